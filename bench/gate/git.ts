/** What the gate asks git. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../ending.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What the engine and the facade are made of: only a change of these can make them slower. */
export const ENGINE_PATHS = ['crates', 'src'];
/** What a build is made of. */
const BUILD_PATHS = [
  ...ENGINE_PATHS,
  'Cargo.toml',
  'Cargo.lock',
  'package.json',
  'package-lock.json',
  '.ci/build.mjs',
  'index.d.ts',
];

export function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 28,
  }).trim();
}

function tryGit(...args: string[]): string | undefined {
  try {
    return git(...args);
  } catch {
    return undefined;
  }
}

/** The whole hash of a commit. */
export function commitOf(ref: string): string {
  const found = tryGit('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`);
  if (!found) throw new UsageError(`git knows no commit ${ref}`);
  return found;
}

/** What this tree is compared with, unless it is said: its last commit while it has changes, else where it left main, else the commit before. */
export function defaultBase(): string {
  if (tryGit('status', '--porcelain', '--', ...ENGINE_PATHS)) return commitOf('HEAD');
  const head = commitOf('HEAD');
  for (const main of ['main', 'master', 'origin/main', 'origin/master']) {
    const fork = tryGit('merge-base', 'HEAD', main);
    if (fork && fork !== head) return fork;
  }
  return commitOf('HEAD^');
}

/** What differs between a commit and this tree in crates/ and src/, one line a file; empty when nothing does. */
export function engineDiff(base: string): string {
  const untracked = git('ls-files', '--others', '--exclude-standard', '--', ...ENGINE_PATHS);
  const lines = [
    git('diff', '--stat=100', base, '--', ...ENGINE_PATHS),
    ...untracked.split('\n').map((name) => name && ` ${name} (new)`),
  ];
  return lines.filter(Boolean).join('\n');
}

/** Whether a build of the commit would be this tree's. */
export function isBuiltAlike(commit: string): boolean {
  return isAlike(commit, BUILD_PATHS);
}

/** Whether its engine would be: the addon, without what is put around it. */
export function isEngineAlike(commit: string): boolean {
  return isAlike(commit, ['crates', 'Cargo.toml', 'Cargo.lock']);
}

function isAlike(commit: string, paths: readonly string[]): boolean {
  const changed = tryGit('diff', '--name-only', commit, '--', ...paths);
  const untracked = tryGit('ls-files', '--others', '--exclude-standard', '--', ...paths);
  return changed === '' && untracked === '';
}

/** Commits after `good` up to `bad` that can have made a difference, oldest first. */
export function commitsBetween(good: string, bad: string): string[] {
  const list = git('rev-list', '--reverse', '--first-parent', `${good}..${bad}`, '--', ...BUILD_PATHS);
  return list.split('\n').filter(Boolean);
}

export function subjectOf(commit: string): string {
  return git('log', '-1', '--format=%h %s', commit);
}
