// Brings a fresh clone to the point where everything else runs: the packages of package-lock.json are installed, and
// there is a Rust toolchain to build with.
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ask, isEntry, main, root, run, Stop } from './step.mjs';

// The package runs on any Node 20; eslint and vite need this one.
const NODE = [20, 19];

export async function setup() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < NODE[0] || (major === NODE[0] && minor < NODE[1])) {
    throw new Stop(`Node ${NODE.join('.')} or newer is needed to build and test, this is ${process.version}`);
  }
  await installPackages(root);
  await requireRust();
}

/** Where the packages of programs by others are named, and the folder below which these programs lie. */
const CLIENTS = join(root, '__test__', 'clients');

/** The packages that only the suites `clients` and `docs` need. Programs in that folder find them by name, as their users do. */
export async function setupClients() {
  await installPackages(join(CLIENTS, 'packages'));
  const link = join(CLIENTS, 'node_modules');
  if (!existsSync(link)) symlinkSync(join(CLIENTS, 'packages', 'node_modules'), link, 'junction');
}

/** The other queues that `npm run bench -- --peers` measures. */
export const setupPeers = () => installPackages(join(root, 'bench', 'peers', 'packages'));

async function installPackages(folder) {
  if (packagesAreInstalled(folder)) return;
  const where = relative(root, folder);
  const title = ['install packages', where && `of ${where}`, '(npm ci)'].filter(Boolean).join(' ');
  await run(title, 'npm', ['ci', '--include=dev', '--loglevel=error'], { quiet: true, cwd: folder });
}

// Versions are compared, not file times: a checkout renews the time of a lockfile that did not change, and npm ci
// would then empty node_modules under whatever is running.
function packagesAreInstalled(folder) {
  const installedLock = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(installedLock)) return false;
  const installed = JSON.parse(readFileSync(installedLock, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')).packages;
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
