// Pins wanted differences within bundles, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { Program } from '../support/program.js';
import { ROOT } from '../support/registry.js';
import { sideOf } from '../support/sides.js';
import { useStage } from '../support/stage.js';

let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'chasquimq-bundle-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe.each(libraries)('$name: differences, bundles', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);

  it.each([
    ['program.js', { bullmq: /ENOENT/, chasquimq: /webpack: externals/ }],
    // the name of the file that a child runs: BullMQ takes the bundle for it, and runs it again for each job
    ['main.js', { bullmq: /^$/, chasquimq: /webpack: externals/ }],
  ])('sandboxed-in-a-bundle: %s', async (file, refusals) => {
    const outfile = join(folder, file);
    const contents = `
      const { Worker } = require('${name}');
      const connection = JSON.parse(process.env.CONNECTION);
      const opts = { connection, autorun: false };
      let told = '';
      try { new Worker('${stage.queueName}', __filename, opts); } catch (error) { told = error.message; }
      console.log(told);
      process.exit();`;
    await build({
      ...{ stdin: { contents, resolveDir: ROOT }, outfile, logLevel: 'silent' },
      ...{ bundle: true, platform: 'node', format: 'cjs', loader: { '.node': 'copy' } },
      alias: { chasquimq: join(ROOT, 'dist/esm/index.js') },
    });
    const program = stage.keep(Program.startText(`require(${JSON.stringify(outfile)})`, { kind: 'commonjs' }));
    expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
    expect(program.lines).toEqual([expect.stringMatching(of(refusals))]);
  });
});
