// Programs that load the package as ES module and as CommonJS, at once, by default export and by names: they have one
// library, as with BullMQ, whose CommonJS has no ES copy.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const FROM_MODULE = `
import { createRequire } from 'node:module';
import library, { Queue, UnrecoverableError } from 'LIBRARY';
import * as everything from 'LIBRARY';

const required = createRequire(process.cwd() + '/program.js')('LIBRARY');
const later = await import('LIBRARY');
console.log('default', library === required, everything.default === required, later.default === required);
console.log('classes', required.Queue === Queue, library.Queue === Queue, later.Queue === Queue);
console.log('errors', new required.UnrecoverableError() instanceof UnrecoverableError);
`;

const FROM_COMMONJS = `
const required = require('LIBRARY');
import('LIBRARY').then((imported) => {
  console.log('default', imported.default === required, required.default !== undefined && required.default !== required);
  console.log('classes', Object.keys(required).every((name) => imported[name] === required[name]));
  console.log('keys', Object.keys(required).includes('default'));
});
`;

describe.each(['bullmq', 'chasquimq', 'chasquimq/v5'])('%s', (library) => {
  const stage = useStage(chasquimq);

  it.each([
    ['an ES module', 'module', FROM_MODULE, ['default true true true', 'classes true true true', 'errors true']],
    ['CommonJS', 'commonjs', FROM_COMMONJS, ['default true false', 'classes true', 'keys false']],
  ] as const)('is one library to %s', async (_, kind, text, expected) => {
    const program = stage.keep(Program.startText(text.replaceAll('LIBRARY', library), { kind }));
    expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
    expect(program.lines).toEqual(expected);
  });
});
