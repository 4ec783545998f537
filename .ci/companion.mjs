// The packages that stand in for BullMQ and for its paid edition, for projects whose tools ask for a range of them.
// `@chasquimq/as-bullmq` has no code of its own but for three classes, each in the file in which BullMQ has it: tracers that wrap
// or rewrite methods find them there, and calls pass through them. `@chasquimq/as-bullmq-pro` is `chasquimq/v5`, as the paid edition
// stands on BullMQ 5.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, Stop } from './step.mjs';

export const COMPANION = '@chasquimq/as-bullmq';
export const PRO_COMPANION = '@chasquimq/as-bullmq-pro';

/** The version of the paid edition whose documented interface is the reference. */
const PRO_REFERENCE = '7.46';

/** Files of BullMQ's, the class in each, and its methods that tracers look for. */
const CLASSES = {
  queue: { name: 'Queue', methods: { add: 'name, data, opts', addBulk: 'jobs' } },
  worker: { name: 'Worker', methods: { callProcessJob: 'job, token, signal' } },
  'flow-producer': { name: 'FlowProducer', methods: { add: 'flow, opts', addBulk: 'flows' } },
};

const read = (...path) => readFileSync(join(root, ...path), 'utf8');

/**
 * Its version: of BullMQ the major and minor that is the reference, and as patch a number that counts up with our own versions.
 * `0.1.2` beside BullMQ 6.7 is `6.7.1002`.
 */
export function companionVersion(ours, bullmq) {
  const [, major, minor, patch, rest] = /^(\d+)\.(\d+)\.(\d+)(.*)$/.exec(ours) ?? [];
  if (Number(minor) > 999 || Number(patch) > 999) throw new Stop(`${ours} has no place in a patch version`);
  const [ofMajor, ofMinor] = bullmq.split('.');
  return `${ofMajor}.${ofMinor}.${(Number(major) * 1000 + Number(minor)) * 1000 + Number(patch)}${rest}`;
}

/** Writes the package into `folder`. The facade has to be built: its names are those of the package. `more` goes into its manifest. */
export function writeCompanion(folder, more = {}) {
  const names = /export \{([^}]*)\}/.exec(read('dist/esm/index.js'))?.[1].match(/\w+/g);
  if (!names) throw new Stop('dist/esm/index.js names no exports');
  const files = {
    'package.json': `${JSON.stringify({ ...manifest(), ...more }, null, 2)}\n`,
    'README.md': README,
    'dist/cjs/index.js': commonJs(names),
    'dist/cjs/index.d.ts': "export * from 'chasquimq';\n",
    'dist/esm/package.json': '{ "type": "module" }\n',
    'dist/esm/index.js': `export {\n${lines(names)}} from '../cjs/index.js';\nexport { default } from '../cjs/index.js';\n`,
    'dist/esm/index.d.ts': "export * from 'chasquimq';\nexport { default } from 'chasquimq';\n",
  };
  for (const [file, { name, methods }] of Object.entries(CLASSES)) {
    files[`dist/cjs/classes/${file}.js`] = classFile(name, methods);
    files[`dist/esm/classes/${file}.js`] = `export { ${name} } from '../../cjs/classes/${file}.js';\n`;
    for (const form of ['cjs', 'esm'])
      files[`dist/${form}/classes/${file}.d.ts`] = `export { ${name} } from 'chasquimq';\n`;
  }
  writeAll(folder, files);
}

/** Writes the package for the paid edition into `folder`. */
export function writeProCompanion(folder, more = {}) {
  const ours = JSON.parse(read('package.json'));
  const its = {
    ...manifestOf(ours),
    name: PRO_COMPANION,
    version: companionVersion(ours.version, PRO_REFERENCE),
    description: "ChasquiMQ under the name and a version of BullMQ's paid edition",
    exports: { '.': ours.exports['.'], './package.json': './package.json' },
  };
  const types = "export * from 'chasquimq/v5';\n";
  const whole = `${types}export { default } from 'chasquimq/v5';\n`;
  writeAll(folder, {
    'package.json': `${JSON.stringify({ ...its, ...more }, null, 2)}\n`,
    'README.md': PRO_README,
    'dist/cjs/index.js': "'use strict';\nmodule.exports = require('chasquimq/v5');\n",
    'dist/cjs/index.d.ts': types,
    'dist/esm/package.json': '{ "type": "module" }\n',
    'dist/esm/index.js': whole,
    'dist/esm/index.d.ts': whole,
  });
}

function writeAll(folder, files) {
  rmSync(folder, { recursive: true, force: true });
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

const lines = (names) => names.map((name) => `  ${name},\n`).join('');

function manifest() {
  const ours = JSON.parse(read('package.json'));
  return {
    ...manifestOf(ours),
    name: COMPANION,
    version: companionVersion(ours.version, ours.devDependencies.bullmq),
    description: 'ChasquiMQ under the name and a version of BullMQ, for tools that ask for `bullmq`',
    // as with BullMQ, every file can be asked for
    exports: { '.': ours.exports['.'], './package.json': './package.json', './dist/*': './dist/*' },
  };
}

/** What both packages have of ours. */
function manifestOf({ version, main, module, types, license, engines, keywords }) {
  return {
    ...{ keywords, license, engines, main, module, types },
    publishConfig: { access: 'public' },
    files: ['dist'],
    dependencies: { chasquimq: version },
  };
}

/** Each export is a statement of its own: so Node knows its name when an ES module imports it. */
function commonJs(names) {
  const own = Object.entries(CLASSES).flatMap(([file, { name }]) =>
    // a class has two names
    [name, `${name}Pro`].map((exported) => [exported, `require('./classes/${file}.js').${name}`]),
  );
  const from = { ...Object.fromEntries(names.map((name) => [name, `chasquimq.${name}`])), ...Object.fromEntries(own) };
  const statements = Object.entries(from).map(([name, value]) => `exports.${name} = ${value};`);
  const whole = "Object.defineProperty(module.exports, 'default', { value: module.exports });";
  return ["'use strict';", "const chasquimq = require('chasquimq');", ...statements, whole, ''].join('\n');
}

function classFile(name, methods) {
  const body = Object.entries(methods).map(
    ([method, parameters]) => `  ${method}(${parameters}) {\n    return super.${method}(${parameters});\n  }\n`,
  );
  return [
    "'use strict';",
    "const chasquimq = require('chasquimq');\n",
    `class ${name} extends chasquimq.${name} {\n${body.join('\n')}}\n`,
    `exports.${name} = ${name};\n`,
  ].join('\n');
}

const README = `# @chasquimq/as-bullmq

[ChasquiMQ](https://www.npmjs.com/package/chasquimq) under a version that BullMQ has, for projects with tools that ask for
\`bullmq\`: bull-board, \`@nestjs/bullmq\`, \`bullmq-otel\`, tracers.

\`\`\`json
{ "dependencies": { "bullmq": "npm:@chasquimq/as-bullmq@^6.7.0" } }
\`\`\`

Every \`import ... from 'bullmq'\` in the project and in its tools is then ChasquiMQ, and no range of a peer dependency is missed.
Major and minor are those of the BullMQ whose API this is; the patch counts up with ChasquiMQ's versions (0.1.2 is 6.7.1002).

\`Queue\`, \`Worker\` and \`FlowProducer\` are subclasses that only pass calls on, in the files in which BullMQ has them
(\`dist/cjs/classes\`): tracers wrap them there. Import from \`bullmq\` alone in such a project: those that \`chasquimq\` itself exports
are their base classes.
`;

const PRO_README = `# @chasquimq/as-bullmq-pro

[ChasquiMQ](https://www.npmjs.com/package/chasquimq) under the name and a version of BullMQ's paid edition, so that a code base moves without a
change of its imports:

\`\`\`json
{ "dependencies": { "@taskforcesh/bullmq-pro": "npm:@chasquimq/as-bullmq-pro@^${PRO_REFERENCE}.0" } }
\`\`\`

Its exports are those of \`chasquimq/v5\`, as the paid edition stands on BullMQ 5: \`QueuePro\`, \`WorkerPro\`, \`JobPro\` and the like are the classes
\`Queue\`, \`Worker\`, \`Job\`. It is no part of BullMQ Pro, and has no code of it. Major and minor are those of the paid edition whose documentation is the
reference; the patch counts up with ChasquiMQ's versions (0.1.2 is ${PRO_REFERENCE}.1002).
`;
