// Programs that esbuild has made one file of: with the package beside it (external), or within it, with a loader
// for the addon's file, and with a `require` where the bundle is an ES module. Without settings the build fails, and says which
// file wants a loader.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type BuildFailure, type BuildOptions } from 'esbuild';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

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
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'chasquimq-bundle-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const within: BuildOptions = {
  alias: { chasquimq: join(ROOT, 'dist/esm/index.js') },
  loader: { '.node': 'copy' },
};

it.each<[string, string, BuildOptions]>([
  ['CommonJS, with the package beside it', 'cjs', { external: ['chasquimq'] }],
  ['an ES module, with the package beside it', 'esm', { external: ['chasquimq'] }],
  ['CommonJS, with the package within it', 'cjs', within],
  ['an ES module, with the package within it', 'esm', { ...within, banner: { js: REQUIRE } }],
])('a bundle runs that is %s', async (_, format, options) => {
  const outfile = join(folder, format === 'cjs' ? 'program.cjs' : 'program.mjs');
  await build({
    stdin: { contents: PROGRAM, resolveDir: ROOT },
    ...{ bundle: true, platform: 'node', format: format as 'cjs' | 'esm', outfile, logLevel: 'silent' },
    ...options,
  });
  await mkdir(join(folder, 'node_modules'));
  if (options.external) symlinkSync(ROOT, join(folder, 'node_modules/chasquimq'), 'junction');
  const program = stage.keep(
    Program.startText(`await import('${pathToFileURL(outfile).href}');`, { env: { QUEUE: stage.queueName } }),
  );
  expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
  expect(program.lines).toEqual(['result 2 true']);
});

it('a build without settings fails, and says what it needs', async () => {
  const stdin = { contents: PROGRAM, resolveDir: ROOT };
  const plain = build({
    stdin,
    bundle: true,
    platform: 'node',
    outfile: join(folder, 'program.js'),
    logLevel: 'silent',
  });
  const { errors } = await plain.catch((error: BuildFailure) => error);
  expect(errors.map(({ text }) => text)).toEqual([
    expect.stringMatching(/^No loader is configured for "\.node" files/),
  ]);
});
