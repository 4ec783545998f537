// Everything CI checks without running a test. Each check runs, whatever became of the one before.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkBudget } from './budget.mjs';
import { buildAddon, buildFacade } from './build.mjs';
import { checkPages } from './docs.mjs';
import { checkLayers } from './layers.mjs';
import { checkLuaGlobals } from './lua-globals.mjs';
import { checkRustModules } from './rust-modules.mjs';
import { setup } from './setup.mjs';
import { isEntry, main, root, run, runLanes, Stop } from './step.mjs';
import { checkSuites } from './suites.mjs';
import { checkWorkflows } from './workflows.mjs';

const quiet = { quiet: true };

/** Rust's checks compile, and run beside the others. */
const OF_RUST = [
  () => run('format (rustfmt)', 'cargo', ['fmt', '--all', '--check'], quiet),
  () => run('clippy', 'cargo', ['clippy', '--workspace', '--all-targets', '--', '-D', 'warnings'], quiet),
  () =>
    run('rustdoc', 'cargo', ['doc', '--workspace', '--no-deps'], { ...quiet, env: { RUSTDOCFLAGS: '-D warnings' } }),
  checkGeneratedTypes,
  async () => checkRustModules(),
];
const OTHERS = [
  () => run('format (prettier)', 'prettier', ['--check', '--log-level', 'warn', '.'], quiet),
  checkPages,
  // The bench imports the package by its name, so its types are those of the built facade.
  buildFacade,
  () => run('types (tsc)', 'tsc', ['--noEmit'], quiet),
  // the same programs, against BullMQ's types
  () => run('types of BullMQ (tsc)', 'tsc', ['-p', '__test__/types'], quiet),
  () => run('eslint', 'eslint', ['.', '--max-warnings', '0'], quiet),
  checkLayers,
  checkLuaGlobals,
  async () => checkBudget(),
  checkWorkflows,
  async () => checkSuites(),
];

export async function lint() {
  await setup();
  await runLanes(OF_RUST, OTHERS);
}

async function checkGeneratedTypes() {
  const file = join(root, 'index.d.ts');
  const read = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const before = read();
  await buildAddon([], { release: false });
  if (read() !== before) throw new Stop('index.d.ts was not what the addon generates; it is now: commit it');
}

if (isEntry(import.meta.url)) await main(lint);
