/**
 * Builds of other commits, below target/gate: each once, with cargo's files shared by all of them. What stays of a build is what a program
 * loads, and the program that counts instructions.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../ending.js';
import { isBuiltAlike, ROOT } from './git.js';

const CACHE = join(ROOT, 'target', 'gate');
const MOST_BUILDS = 12;
const TELL_MS = 15_000;
const LAST_LINES = 30;
export const COUNTER = 'chasquimq-counts';
const COUNTER_BUILD = ['build', '--release', '--locked', '-p', COUNTER];

type Say = (line: string) => void;

/** Gives the path of the built module. */
export async function buildOf(commit: string, say: Say): Promise<string> {
  const built = join(CACHE, 'builds', commit);
  if (!existsSync(built)) {
    mkdirSync(join(CACHE, 'builds'), { recursive: true });
    if (isBuiltAlike(commit)) {
      say(`the sources of ${commit.slice(0, 9)} are those of this tree: its build is this one`);
      keepProduct(ROOT, built);
    } else {
      await withSources(commit, async (work) => {
        await buildIn(work, commit, say);
        keepProduct(work, built);
      });
    }
    removeOldest('builds');
  }
  utimesSync(built, new Date(), new Date());
  return join(built, 'dist', 'esm', 'index.js');
}

/** Gives the folder of the program that counts instructions (`COUNTER`); undefined for a commit that has none. */
export async function counterOf(commit: string, say: Say): Promise<string | undefined> {
  const built = join(CACHE, 'counters', commit);
  if (!existsSync(built)) {
    mkdirSync(join(CACHE, 'counters'), { recursive: true });
    const isThere = await withSources(commit, async (work) => {
      if (!existsSync(join(work, 'crates', COUNTER))) return false;
      // both are compiled by one compiler
      copyFileSync(join(ROOT, 'rust-toolchain.toml'), join(work, 'rust-toolchain.toml'));
      await runBuild(work, `what counts instructions of ${commit.slice(0, 9)}`, 'cargo', COUNTER_BUILD, say);
      const staged = `${built}.${process.pid}`;
      mkdirSync(staged);
      copyFileSync(join(CACHE, 'cargo', 'release', COUNTER), join(staged, COUNTER));
      renameSync(staged, built);
      return true;
    });
    if (!isThere) return undefined;
    removeOldest('counters');
  }
  utimesSync(built, new Date(), new Date());
  return built;
}

/** The same of this tree. */
export async function counterHere(say: Say): Promise<string> {
  await runBuild(ROOT, 'what counts instructions of this tree', 'cargo', COUNTER_BUILD, say, join(ROOT, 'target'));
  return join(ROOT, 'target', 'release');
}

async function withSources<T>(commit: string, use: (work: string) => Promise<T>): Promise<T> {
  const work = join(CACHE, `work.${process.pid}`);
  try {
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 2 ** 30 });
    // the files are new: by the time of their commit cargo would take them for those of a later commit that it has built
    execFileSync('tar', ['-x', '-m', '-C', work], { input: archive });
    return await use(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function buildIn(work: string, commit: string, say: Say): Promise<void> {
  if (!existsSync(join(work, '.ci', 'build.mjs')))
    throw new UsageError(`${commit.slice(0, 9)} has no .ci/build.mjs to build it with`);
  const locks = [ROOT, work].map((folder) => readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  // other packages are installed there by its own build
  if (locks[0] === locks[1]) symlinkSync(join(ROOT, 'node_modules'), join(work, 'node_modules'), 'dir');

  await runBuild(work, commit.slice(0, 9), process.execPath, ['.ci/build.mjs'], say);
}

async function runBuild(
  folder: string,
  what: string,
  command: string,
  args: readonly string[],
  say: Say,
  target = join(CACHE, 'cargo'),
): Promise<void> {
  const since = performance.now();
  const seconds = () => Math.round((performance.now() - since) / 1e3);
  say(`building ${what}, which takes minutes the first time`);
  const heartbeat = setInterval(() => say(`  ... building: ${seconds()} s`), TELL_MS);
  const env = { ...process.env, CARGO_TARGET_DIR: target };
  const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => lines.push(String(chunk)));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve)).finally(() =>
    clearInterval(heartbeat),
  );
  if (code !== 0) {
    const last = lines.join('').trim().split('\n').slice(-LAST_LINES).join('\n');
    throw new UsageError(`${last}\n\n${what} does not build (above: the last it said)`);
  }
  say(`  built in ${seconds()} s`);
}

/** A copy of a built module, until this process ends: loaded, it is a library of its own, with an addon of its own. */
export function copyOf(module: string): string {
  const [from, to] = [join(module, '..', '..', '..'), join(CACHE, `first.${process.pid}`)];
  for (const name of readdirSync(from).filter((each) => each !== 'node_modules')) {
    cpSync(join(from, name), join(to, name), { recursive: true });
  }
  process.once('exit', () => rmSync(to, { recursive: true, force: true }));
  return join(to, 'dist', 'esm', 'index.js');
}

/** A build is there as a whole or not at all. */
function keepProduct(from: string, to: string): void {
  const staged = `${to}.${process.pid}`;
  mkdirSync(staged, { recursive: true });
  const addons = readdirSync(from).filter((name) => name.endsWith('.node'));
  for (const name of ['dist', 'index.cjs', 'package.json', ...addons]) {
    cpSync(join(from, name), join(staged, name), { recursive: true });
  }
  const packages = existsSync(join(from, 'node_modules')) ? join(from, 'node_modules') : join(ROOT, 'node_modules');
  if (packages.startsWith(ROOT + 'node_modules') || isLink(packages)) {
    symlinkSync(join(ROOT, 'node_modules'), join(staged, 'node_modules'), 'dir');
  } else {
    renameSync(packages, join(staged, 'node_modules'));
  }
  renameSync(staged, to);
}

function isLink(path: string): boolean {
  return existsSync(path) && statSync(path).ino === statSync(join(ROOT, 'node_modules')).ino;
}

function removeOldest(kind: 'builds' | 'counters'): void {
  const folder = join(CACHE, kind);
  const byAge = readdirSync(folder)
    .map((name) => ({ path: join(folder, name), used: statSync(join(folder, name)).mtimeMs }))
    .sort((one, other) => other.used - one.used);
  for (const { path } of byAge.slice(MOST_BUILDS)) rmSync(path, { recursive: true, force: true });
}
