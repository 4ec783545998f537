/** Where and on what the figures were measured: without it a figure cannot be compared or repeated. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What the engine and the facade are made of. */
const MEASURED_PATHS = ['crates', 'src'];

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
  readonly node: string;
}

export function describeMachine(): Machine {
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
  };
}

/** Load over 1, 5 and 15 minutes. */
export function loadAverage(): string {
  return os
    .loadavg()
    .map((load) => load.toFixed(2))
    .join(' ');
}

export interface SourceState {
  /** Short hash of the commit, `uncommitted` before there is one. */
  readonly commit: string;
  /** Lines of `git status --porcelain -- crates src`. */
  readonly changes: readonly string[];
  /** Tells two sets of uncommitted changes to crates/ and src/ apart; undefined when there are none. */
  readonly engineDiff: string | undefined;
}

export function describeSource(): SourceState {
  const commit = git('rev-parse', '--short', 'HEAD')?.trim() || 'uncommitted';
  const changes = (git('status', '--porcelain', '--', ...MEASURED_PATHS) ?? '').split('\n').filter(Boolean);
  return { commit, changes, engineDiff: changes.length > 0 ? hashOfChanges() : undefined };
}

/** `git diff` leaves out files that are not tracked yet, so their content is hashed beside it. */
function hashOfChanges(): string {
  const hash = createHash('sha256').update(git('diff', 'HEAD', '--', ...MEASURED_PATHS) ?? '');
  const untracked = git('ls-files', '-z', '--others', '--exclude-standard', '--', ...MEASURED_PATHS) ?? '';
  for (const path of untracked.split('\0').filter(Boolean)) hash.update(path).update(readFileSync(`${ROOT}/${path}`));
  return hash.digest('hex').slice(0, 12);
}

/** Undefined where git says no: a copy without a repository, or one without a commit. */
function git(...args: string[]): string | undefined {
  try {
    return execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 2 ** 28,
    });
  } catch {
    return undefined;
  }
}
