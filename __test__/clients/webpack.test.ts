// Programs that webpack has made one file of: with the package beside it (an external), or within it, with node-loader for the
// addon's file. Without either the build fails, and says which file wants a loader.
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import webpack, { type Configuration } from 'webpack';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { PACKAGES, ROOT } from '../support/registry.js';
import { useStage } from '../support/stage.js';

const PROGRAM = `
import library, { Queue, Worker } from 'chasquimq';
const connection = JSON.parse(process.env.CONNECTION);
const queue = new Queue(process.env.QUEUE, { connection });
const worker = new Worker(process.env.QUEUE, async (job) => job.data + 1, { connection });
queue.add('job', 1);
worker.once('completed', async (job, result) => {
  console.log('result', result, library.Queue === Queue);
  await worker.close();
  await queue.close();
});
`;

const stage = useStage(chasquimq);
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chasquimq-webpack-'));
  const addons = readdirSync(ROOT).filter((name) => name.endsWith('.node'));
  for (const name of ['package.json', 'dist', 'index.cjs', ...addons]) {
    cpSync(join(ROOT, name), join(folder, 'node_modules/chasquimq', name), { recursive: true });
  }
  for (const name of ['cron-parser', 'luxon']) {
    cpSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true });
  }
  writeFileSync(join(folder, 'program.mjs'), PROGRAM);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Builds `program.mjs`; resolves to the messages of the errors. */
function build({ output, ...settings }: Configuration): Promise<string[]> {
  const filename = output?.module ? 'bundle.mjs' : 'bundle.cjs';
  const plain: Configuration = {
    mode: 'production',
    optimization: { minimize: false },
    target: 'node',
    context: folder,
    entry: './program.mjs',
  };
  return new Promise((resolve, reject) => {
    webpack({ ...plain, ...settings, output: { ...output, path: folder, filename } }, (error, stats) => {
      if (error) return reject(error);
      resolve(stats?.toJson({ all: false, errors: true }).errors?.map(({ message }) => message) ?? []);
    });
  });
}

const within: Configuration = {
  module: { rules: [{ test: /\.node$/, loader: join(PACKAGES, 'node-loader') }] },
};
// node-loader looks for its file at the public path, which is an address in a module
const asModule: Configuration = { experiments: { outputModule: true }, output: { module: true, publicPath: '' } };

it.each<[string, Configuration]>([
  ['CommonJS, with the package beside it', { externals: { chasquimq: 'commonjs chasquimq' } }],
  ['an ES module, with the package beside it', { ...asModule, externals: { chasquimq: 'module chasquimq' } }],
  ['CommonJS, with the package within it', within],
  ['an ES module, with the package within it', { ...asModule, ...within }],
])('a bundle runs that is %s', async (_, settings) => {
  expect(await build(settings)).toEqual([]);
  // what is within the bundle needs nothing beside it
  if (settings.module) rmSync(join(folder, 'node_modules'), { recursive: true });
  const bundle = pathToFileURL(join(folder, settings.output?.module ? 'bundle.mjs' : 'bundle.cjs'));
  const program = stage.keep(Program.startText(`await import('${bundle.href}');`, { env: { QUEUE: stage.queueName } }));
  expect(await program.end(), program.errors.slice(-2000)).toEqual({ code: 0, signal: null });
  expect(program.lines).toEqual(['result 2 true']);
});

it('a build without settings fails, and says what it needs', async () => {
  const errors = await build({});
  expect(errors).not.toEqual([]);
  for (const error of errors) expect(error).toMatch(/appropriate loader to handle this file type/);
});
