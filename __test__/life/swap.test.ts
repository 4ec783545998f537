// The promise of the package: a program written for BullMQ does the same when only the import is changed.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const text = readFileSync(new URL('programs/shop.mjs', import.meta.url), 'utf8');
const IMPORT = "from 'bullmq'";

/** The same program as users of CommonJS write it. */
function asCommonJs(esm: string): string {
  const [imports = '', body = ''] = esm.split(/(?<=from '\w+';\n)/);
  const required = imports.replace('import {', 'const {').replace(/ from ('\w+');/, ' = require($1);');
  return `${required}(async () => {\n${body}\n})();`;
}

describe('swap', () => {
  const stage = useStage(chasquimq);

  async function transcript(program: string, kind: 'module' | 'commonjs'): Promise<string[]> {
    const running = stage.keep(Program.startText(program, { env: { QUEUE: stage.queueName }, kind }));
    expect(await running.end(), running.errors).toEqual({ code: 0, signal: null });
    expect(running.errors).toBe('');
    return running.lines;
  }

  it.each([
    ['an ES module', 'module', text],
    ['a CommonJS script', 'commonjs', asCommonJs(text)],
  ] as const)('%s prints the same with either package', async (_, kind, program) => {
    expect(program.split(kind === 'module' ? IMPORT : "require('bullmq')")).toHaveLength(2);
    const expected = await transcript(program, kind);
    expect(expected.length).toBeGreaterThan(80);
    expect(await transcript(program.replace("'bullmq'", "'chasquimq'"), kind)).toEqual(expected);
  });
});
