// Preloaded (`--import`), gives whoever asks for `bullmq` the library that LIBRARY names, by import and by require: what an
// application does that has it under that name.
import Module, { createRequire, register } from 'node:module';
import { fileURLToPath } from 'node:url';

const { LIBRARY } = process.env;
const imported = import.meta.resolve(LIBRARY);
const require = createRequire(fileURLToPath(import.meta.url));
const required = require.resolve(LIBRARY);

const hooks = `export const resolve = (name, context, next) =>
  name === 'bullmq' && !context.conditions.includes('require')
    ? { url: ${JSON.stringify(imported)}, shortCircuit: true }
    : next(name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...rest) => (name === 'bullmq' ? required : resolve(name, ...rest));

const { Queue } = require(LIBRARY);
if (require('bullmq').Queue !== Queue || (await import('bullmq')).Queue !== Queue) {
  throw new Error(`bullmq is not ${LIBRARY}`);
}
