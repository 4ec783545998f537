// Builds the addon and the facade, each only when its sources differ from what was last built.
//
//   addon    crates/ -> chasquimq.<platform>.node, index.cjs (its loader), index.d.ts (its types, committed)
//   facade   src/    -> dist/cjs, with types beside it; dist/esm gives the same to ES modules; both entries are in each
//
// The addon is built as it is released, or for tests in less time (`release: false`): a release build that is up to date serves them, too.
// `CHASQUIMQ_FEATURES=plain` builds the addon without its feature `low-latency`: all goes the plain way then.
// `node .ci/build.mjs` builds both, `node .ci/build.mjs addon --target <triple>` hands the rest to `napi build`.
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setup } from './setup.mjs';
import { isEntry, main, root, run, say } from './step.mjs';

const path = (...parts) => join(root, ...parts);
/** What a program can import: `chasquimq`, and `chasquimq/v5`. */
const ENTRIES = ['index', 'v5/index'];

const features = process.env.CHASQUIMQ_FEATURES === 'plain' ? ['--no-default-features'] : [];

export async function build(how) {
  await buildAddon([], how);
  await buildFacade();
}

export async function buildAddon(napiArgs = [], { release = true } = {}) {
  const stamp = path('target', 'addon.stamp');
  // Taken before the build: what is edited while it runs has not been built.
  const { name, version, napi } = JSON.parse(readFileSync(path('package.json'), 'utf8'));
  const sources = digest(['crates', 'Cargo.toml', 'Cargo.lock', '.cargo']) + JSON.stringify({ name, version, napi });
  // The types are an output, yet part of the content: an edit of them by hand is then undone by the next build.
  const content = (profile) => sources + digest(['index.d.ts']) + features.join() + profile;
  const built = readdirSync(root).some((name) => name.endsWith('.node')) && existsSync(path('index.cjs'));
  const fitting = release ? ['release'] : ['release', 'testing'];
  if (built && napiArgs.length === 0 && fitting.some((profile) => isStamped(stamp, content(profile)))) {
    return say('> addon: up to date');
  }
  const profile = release ? 'release' : 'testing';

  await staging('addon', async (staged) => {
    const crate = [
      '--manifest-path',
      'crates/chasquimq-node/Cargo.toml',
      '--platform',
      '--profile',
      profile,
      '--no-const-enum',
      ...features,
    ];
    const files = ['--output-dir', staged, '--js', 'index.cjs', '--dts', 'index.d.ts'];
    const locked = process.env.CI ? ['--', '--locked'] : [];
    await run('build the addon (napi build)', 'napi', ['build', ...crate, ...files, ...napiArgs, ...locked]);
    // a doc comment that goes through a macro comes out as a raw string, which napi-derive takes for its text
    const types = path(staged, 'index.d.ts');
    writeFileSync(types, readFileSync(types, 'utf8').replaceAll('/** r" ', '/** '));
    for (const name of readdirSync(path(staged))) renameSync(path(staged, name), path(name));
  });
  writeFileSync(stamp, content(profile));
}

export async function buildFacade() {
  const stamp = path('target', 'facade.stamp');
  const sources = ['src', 'index.d.ts', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json', '.ci/build.mjs'];
  const content = digest(sources);
  if (existsSync(path('dist')) && isStamped(stamp, content)) return say('> facade: up to date');

  await staging('dist', async (staged) => {
    await run('build the facade (tsc)', 'tsc', ['-p', 'tsconfig.build.json', '--outDir', `${staged}/cjs`]);
    await writeCommonJs(path(staged, 'cjs'));
    await writeEsModule(path(staged, 'esm'));
    chmodSync(path(staged, 'cjs', 'tools', 'cli', 'bin.js'), 0o755);
    // src/native/addon.ts names the addon as ../../index.cjs and its types as ../../index.js: from src/native/ these lie
    // in the package's root. From dist/cjs/native/ the same names lead to these two.
    writeFileSync(path(staged, 'index.cjs'), "module.exports = require('../index.cjs');\n");
    cpSync(path('index.d.ts'), path(staged, 'index.d.ts'));
    // CommonJS, types included: those of an ES module would ask for TypeScript 5.3
    writeFileSync(path(staged, 'package.json'), '{ "type": "commonjs" }\n');
    rmSync(path('dist'), { recursive: true, force: true });
    renameSync(path(staged), path('dist'));
  });
  writeFileSync(stamp, content);
}

// Builds in a folder of this process, from which `body` renames the result into place: a process that has the old
// addon loaded keeps it, nobody loads half a file, and two builds at once do not mix.
async function staging(name, body) {
  const staged = `target/${name}.${process.pid}`;
  mkdirSync(path(staged), { recursive: true });
  try {
    await body(staged);
  } finally {
    rmSync(path(staged), { recursive: true, force: true });
  }
}

// What esbuild gives as a module's exports, a copy with a getter for each that looks it up by its name; and what it copies. A job takes dozens of such
// looks.
const COPIES = '__copyProps(__defProp({}, "__esModule", { value: true }), mod)';
const ITSELF = '__defProp(mod, "__esModule", { value: true })';

// esbuild and not tsc, because tsc turns `import()` into `require()` here, and a user's processor file may be an ES
// module; esbuild also gives import.meta.url a value.
async function writeCommonJs(cjs) {
  const esbuild = await import('esbuild');
  const { outputFiles } = await esbuild.build({
    entryPoints: ['src/**/*.ts'],
    absWorkingDir: root,
    outbase: 'src',
    outdir: cjs,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.url': 'moduleUrl' },
    // a bundle that is an ES module has no file name, and nothing beside it to be found by one
    // in front of all else, esbuild's own directive comes too late
    banner: {
      js: "'use strict';\nconst moduleUrl = typeof __filename === 'string' ? require('node:url').pathToFileURL(__filename).href : '';",
    },
    logLevel: 'warning',
    write: false,
  });
  for (const { path: file, text } of outputFiles) {
    if (text.includes('__toCommonJS') && !text.includes(COPIES))
      throw new Error(`${file} gives its exports in another way`);
    writeFileSync(file, text.replace(COPIES, ITSELF));
  }
  // bundlers that go by `__esModule` take a default export from here; Node's own is the module anyway
  for (const entry of ENTRIES) {
    appendFileSync(
      join(cjs, `${entry}.js`),
      "Object.defineProperty(module.exports, 'default', { value: module.exports });\n",
    );
  }
}

// What `import` gives is what `require` gives: two copies in one process would be two libraries, with classes of their
// own. As with any CommonJS module the default export is the module; it has no part in `require`'s names.
async function writeEsModule(esm) {
  mkdirSync(esm);
  writeFileSync(join(esm, 'package.json'), '{ "type": "module" }\n');
  for (const entry of ENTRIES) {
    const from = `'${'../'.repeat(entry.split('/').length)}cjs/${entry}.js'`;
    const names = await exportedNames(entry);
    const text = [
      `import chasquimq from ${from};`,
      `export {\n${names.map((name) => `  ${name},\n`).join('')}} from ${from};`,
      'export default chasquimq;',
    ];
    const types = [`import * as chasquimq from ${from};`, `export * from ${from};`, 'export default chasquimq;'];
    mkdirSync(dirname(join(esm, entry)), { recursive: true });
    writeFileSync(join(esm, `${entry}.js`), `${text.join('\n')}\n`);
    writeFileSync(join(esm, `${entry}.d.ts`), `${types.join('\n')}\n`);
  }
}

// Bundled, because of an `export *` from the other entry: only then are its names known.
async function exportedNames(entry) {
  const esbuild = await import('esbuild');
  const source = { entryPoints: [`src/${entry}.ts`], absWorkingDir: root, format: 'esm', outdir: 'target' };
  const apart = { bundle: true, platform: 'node', packages: 'external', external: ['*.cjs'] };
  const { metafile } = await esbuild.build({ ...source, ...apart, metafile: true, write: false });
  return Object.values(metafile.outputs)[0].exports.sort();
}

const isFolder = (name) => statSync(name).isDirectory();

function digest(names) {
  const hash = createHash('sha256');
  const add = (name) => {
    if (!existsSync(path(name))) return;
    if (isFolder(path(name))) {
      for (const inner of readdirSync(path(name)).sort()) if (inner !== 'target') add(`${name}/${inner}`);
    } else {
      hash
        .update(`${name}\0`)
        .update(readFileSync(path(name)))
        .update('\0');
    }
  };
  names.forEach(add);
  return hash.digest('hex');
}

const isStamped = (stamp, content) => existsSync(stamp) && readFileSync(stamp, 'utf8') === content;

if (isEntry(import.meta.url)) {
  await main(async ([product, ...napiArgs]) => {
    await setup();
    if (product !== 'facade') await buildAddon(napiArgs);
    if (product !== 'addon') await buildFacade();
  });
}
