// What there is to check, and which changes ask for it: `.ci/run` does what the changed paths ask for, `.ci/run all` everything.
//
// A changed path asks for the suite whose own file it is, and for each that names a beginning of it in `when`. A path that nobody names
// asks for all. Lint fails when a suite is asked for by no path of the tree, when a beginning is that of no path, and when a test
// file is in no suite, or in two: a table that is out of date hides no test.
import { execFileSync } from 'node:child_process';
import { isEntry, main, root, say, Stop } from './step.mjs';

const EVERY_CHANGE = [''];
const LOCKS = ['package-lock.json', 'Cargo.lock', 'rust-toolchain.toml'];
/** What every test stands on. */
const GROUND = ['__test__/support/', '.ci/', 'vitest.config.mjs', 'package.json', ...LOCKS];
const ENGINE = ['crates/', 'Cargo.toml', 'index.d.ts'];
const FACADE = ['src/'];
/** How the engine speaks to servers. */
const WAYS = ['crates/chasquimq/src/redis/', 'crates/chasquimq-node/src/low_latency/', 'src/connection/'];
/** What it keeps there. */
const STORED = ['crates/chasquimq/lua/jobs/', 'crates/chasquimq/lua/queue/', 'crates/chasquimq/src/job/'];
/** How workers take jobs, and end them. */
const TAKING = ['crates/chasquimq/src/worker/', 'crates/chasquimq/lua/step/', 'src/worker/'];

const BENCH = ['__test__/unit/bench'];
const RELEASE = ['__test__/unit/release', '__test__/unit/publish'];
/** The tests of what users read and start from. */
const PAGES = ['docs', 'site', 'examples'].map((name) => `__test__/clients/${name}`);

/**
 * JavaScript tests; each suite is a project of vitest's. Its test files begin with one of `at`, and none of `except`. The files
 * of a suite that is `shared` run one after the other in a process that has loaded the libraries once. Others get a process each: they
 * count its connections, end it, or the like.
 */
export const JS = {
  unit: { at: ['__test__/unit/'], except: [...BENCH, ...RELEASE], shared: true, when: EVERY_CHANGE },
  parity: { at: ['__test__/parity/'], shared: true, when: EVERY_CHANGE },
  v5: { at: ['__test__/v5/'], shared: true, when: [...FACADE, ...GROUND] },
  cli: { at: ['__test__/cli/'], shared: true, when: [...FACADE, ...GROUND] },
  life: { at: ['__test__/life/'], except: ['__test__/life/memory'], when: [...ENGINE, ...FACADE, ...GROUND] },
  memory: { at: ['__test__/life/memory'], when: [...TAKING, 'src/native/', 'src/job/', 'src/events/'] },
  // these two are files of others once more, with servers of their own: vitest.config.mjs
  sentinel: { when: [...WAYS, '__test__/life/', '__test__/support/'] },
  cluster: { when: [...WAYS, 'crates/chasquimq/lua/queue/', '__test__/life/', '__test__/support/'] },
  migrate: {
    at: ['__test__/migrate/'],
    when: [...STORED, 'crates/chasquimq-migrate/', 'src/tools/migrate/', 'src/tools/cli/'],
  },
  chaos: { at: ['__test__/chaos/'], when: [...TAKING, 'crates/chasquimq/src/redis/', '__test__/support/'] },
  differential: {
    at: ['__test__/differential/'],
    when: [...TAKING, 'crates/chasquimq/lua/', 'src/flow/', 'src/job/', 'src/scheduler/', 'package-lock.json'],
  },
  upgrade: { at: ['__test__/upgrade/'], when: [...STORED, 'crates/chasquimq/lua/transitions/'] },
  clients: {
    at: ['__test__/clients/'],
    except: PAGES,
    when: ['src/index.ts', 'src/v5/', 'src/native/', 'npm/', '.ci/', 'package.json', ...LOCKS],
  },
  docs: { at: PAGES, when: ['docs/', 'examples/', 'README.md', 'src/index.ts', 'package.json', ...LOCKS] },
  release: { at: RELEASE, shared: true, when: ['.ci/', '.github/workflows/', 'npm/', 'package.json', 'CHANGELOG.md'] },
  bench: { at: BENCH, shared: true, when: ['bench/', 'benchmarks/', '__test__/support/'] },
};

/** The other checks. */
const OTHERS = {
  lint: { when: EVERY_CHANGE },
  audit: { when: [...LOCKS, '.ci/', 'npm/', 'package.json'] },
  rust: { when: EVERY_CHANGE },
  types: { when: EVERY_CHANGE },
  counts: { when: EVERY_CHANGE },
  // BullMQ's half of what runs against both: it moves only with these
  bullmq: { when: ['__test__/parity/', '__test__/v5/', '__test__/support/', 'src/tools/doctor/', 'package-lock.json'] },
  // a newer server, and the transitions as scripts in place of functions
  scripts: { when: ['crates/chasquimq/src/redis/', 'crates/chasquimq/lua/transitions/', 'crates/chasquimq-build/'] },
};

export const SUITES = { ...JS, ...OTHERS };

/** What lint alone looks at, and the suites of every change. */
const NO_OTHERS = [
  ...['.editorconfig', '.gitattributes', '.github/', '.gitignore', '.npmrc', '.prettier', 'LICENSE'],
  ...[
    'CONTRIBUTING.md',
    'clippy.toml',
    'eslint.config.js',
    'rustfmt.toml',
    'tsconfig',
    'v5/',
    '__test__/types/',
    '__test__/rehearsal/',
  ],
];

const beginsWith = (beginnings) => (path) => beginnings.some((beginning) => path.startsWith(beginning));
const isOwn = (path, { at = [], except = [] }) => beginsWith(at)(path) && !beginsWith(except)(path);

function asks(path, suite) {
  return isOwn(path, suite) || beginsWith(suite.when)(path);
}

/** The names of the suites that changes of these paths ask for. */
export function suitesFor(paths) {
  const particular = Object.values(SUITES).filter(({ when }) => when !== EVERY_CHANGE);
  const isKnown = (path) =>
    particular.some((suite) => asks(path, suite)) || beginsWith([...NO_OTHERS, ...JS.unit.at, ...JS.parity.at])(path);
  if (!paths.every(isKnown)) return Object.keys(SUITES);
  const isWanted = (suite) => suite.when === EVERY_CHANGE || paths.some((path) => asks(path, suite));
  return Object.keys(SUITES).filter((name) => isWanted(SUITES[name]));
}

/** What is wrong with the table, seen from the files that git has. */
export function faultsOfTable(files, suites = SUITES) {
  const all = Object.entries(suites);
  const unasked = all.filter(([, suite]) => !files.some((path) => asks(path, suite)));
  const gone = all.flatMap(([name, { at = [], when }]) =>
    [...at, ...when].filter((beginning) => !files.some(beginsWith([beginning]))).map((beginning) => [name, beginning]),
  );
  const isTest = (path) => path.startsWith('__test__/') && path.endsWith('.test.ts');
  // as vitest finds them
  const found = (path, beginning) =>
    path.startsWith(beginning) && /^[^/]*\.test\.ts$/.test(path.slice(beginning.length));
  const finds = (path, suite) => isOwn(path, suite) && suite.at.some((beginning) => found(path, beginning));
  const homes = (path) => all.filter(([, suite]) => finds(path, suite)).length;
  const homeless = files.filter((path) => isTest(path) && homes(path) !== 1);
  return [
    ...unasked.map(([name]) => `no path asks for ${name}`),
    ...gone.map(([name, beginning]) => `${name} is asked for by ${beginning}, and there is no such path`),
    ...homeless.map((path) => `${path} is in ${homes(path)} suites`),
  ];
}

export function checkSuites() {
  const faults = faultsOfTable(git('ls-files').filter(Boolean));
  if (faults.length > 0) throw new Stop(['.ci/suites.mjs:', ...faults.map((fault) => `  ${fault}`)].join('\n'));
  say(`> suites: each of the ${Object.keys(SUITES).length} is asked for`);
}

/** What is to be done for the changes since `base`, and why; all of it where there is no base to compare with. */
export function suitesSince(base) {
  if (!base) return { names: Object.keys(SUITES), why: 'there is no commit to compare with' };
  // with what is not committed yet
  const paths = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')].filter(
    Boolean,
  );
  return {
    names: suitesFor(paths),
    why: `${paths.length} paths changed since ${git('log', '-1', '--format=%h %s', base)[0]}`,
  };
}

/** What a change is compared with: CI_BASE, else the newest commit older than twelve hours; undefined where there is none. */
export function baseOfChange() {
  const named = process.env.CI_BASE;
  if (named) return git('rev-parse', '--verify', `${named}^{commit}`)[0];
  return git('rev-list', '-1', '--before=12 hours ago', 'HEAD')[0] || undefined;
}

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n');
}

// says what a change asks for: node .ci/suites.mjs
if (isEntry(import.meta.url)) {
  await main(() => {
    const { names, why } = suitesSince(baseOfChange());
    say(`${why}: ${names.join(' ')}`);
  });
}
