// Brings a fresh clone to the point where everything else runs: the packages of package-lock.json are installed, and
// there is a Rust toolchain to build with.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask, isEntry, main, root, run, Stop } from './step.mjs';

// The package runs on any Node 20; eslint and vite need this one.
const NODE = [20, 19];

export async function setup() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < NODE[0] || (major === NODE[0] && minor < NODE[1])) {
    throw new Stop(`Node ${NODE.join('.')} or newer is needed to build and test, this is ${process.version}`);
  }
  if (!packagesAreInstalled()) {
    await run('install packages (npm ci)', 'npm', ['ci', '--include=dev', '--loglevel=error'], { quiet: true });
  }
  await requireRust();
}

// Versions are compared, not file times: a checkout renews the time of a lockfile that did not change, and npm ci
// would then empty node_modules under whatever is running.
function packagesAreInstalled() {
  const installedLock = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedLock)) return false;
  const installed = JSON.parse(readFileSync(installedLock, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === '') return true;
    return path in installed ? installed[path].version === version : optional === true;
  });
}

async function requireRust() {
  if (await ask('cargo', ['--version'])) return;
  throw new Stop(`Rust is missing: there is no cargo on PATH. To install it:
  Linux, macOS   curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y
  Windows        winget install Rustlang.Rustup
and then run the same command again.`);
}

if (isEntry(import.meta.url)) await main(setup);
