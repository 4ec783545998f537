// Builds a Redis or Valkey from its source, for tests on another server than the machine's: `node .ci/server.mjs redis 8.2.3` prints the folder
// that goes first in PATH. A second call finds what the first has built. What an image holds needs the image's C library; this does not.
import { existsSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ask, isEntry, main, root, run, say, Stop } from './step.mjs';

const SOURCES = {
  redis: 'https://github.com/redis/redis.git',
  valkey: 'https://github.com/valkey-io/valkey.git',
};
const USAGE = `usage: node .ci/server.mjs ${Object.keys(SOURCES).join('|')} VERSION [SOURCE]`;

export async function server([name, version, source = SOURCES[name]] = []) {
  if (!(name in SOURCES) || !/^\d+\.\d+\.\d+$/.test(version ?? '')) throw new Stop(USAGE, 2);
  const folder = join(root, 'target', 'servers', `${name}-${version}`);
  const bin = join(folder, 'bin');
  if (!(await isOf(bin, name, version))) {
    rmSync(folder, { recursive: true, force: true });
    await buildServer(name, version, source, folder);
    if (!(await isOf(bin, name, version))) throw new Stop(`what ${source} has as ${version} is no ${name} ${version}`);
  }
  say(`> server: ${name} ${version}`);
  return bin;
}

async function buildServer(name, version, source, folder) {
  const work = join(root, 'target', 'servers', `source.${process.pid}`);
  // where it is to lie is told to the build as well: a server may look for its parts there
  const make = (...args) => ['-C', work, `PREFIX=${folder}`, 'USE_SYSTEMD=no', ...args];
  try {
    const clone = ['clone', '--quiet', '--depth', '1', '--branch', version, source, work];
    await run(`fetch ${name} ${version}`, 'git', ['-c', 'advice.detachedHead=false', ...clone], { quiet: true });
    await run(`build ${name} ${version}`, 'make', make('-j', String(availableParallelism())), { quiet: true });
    await run(`install ${name} ${version}`, 'make', make('install'), { quiet: true });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Whether the server is there, and is that version. Tests look for `redis-server` first: Valkey has that name, too. */
async function isOf(bin, name, version) {
  const binaries = ['redis-server', `${name}-server`].map((binary) => join(bin, binary));
  if (!binaries.every(existsSync)) return false;
  const told = await Promise.all(binaries.map((binary) => ask(binary, ['--version'])));
  return told.every((line) => line?.split(' ').includes(`v=${version}`));
}

if (isEntry(import.meta.url)) {
  await main(async (args) => process.stdout.write(`${await server(args)}\n`));
}
