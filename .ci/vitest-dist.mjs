// Tests name the sources and run what was built of them: a file of src/ is its twin in dist/cjs, which Node loads as it is.
// So they test what users get, and no process compiles the sources again.
import { dirname, join, relative, resolve } from 'node:path';
import { root } from './step.mjs';

const SOURCES = join(root, 'src');
const BUILT = join(root, 'dist', 'cjs');

export const builtSources = {
  name: 'built-sources',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !source.startsWith('.')) return undefined;
    const inSources = relative(SOURCES, resolve(dirname(importer), source));
    return inSources.startsWith('..') ? undefined : join(BUILT, inSources);
  },
};

/** For `server.deps.external`. */
export const BUILT_FILES = /\/dist\/cjs\/.*\.js$/;
