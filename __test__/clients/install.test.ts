// The package as a release would publish it, installed into an empty project by each package manager: under its own name, and as
// `bullmq`, beside a package that asks for BullMQ, by the alias that the docs name and by the package that stands in for it.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { PACKAGES, Registry, ROOT, version, versionOf } from '../support/registry.js';
import { bun } from '../support/runtimes.js';
import { useStage } from '../support/stage.js';

const PROGRAMS = fileURLToPath(new URL('programs', import.meta.url));
const CONSUMER = join(ROOT, '.ci/consumer');
const BOARD_TYPES = join(ROOT, '__test__/clients/board/board.mts');
const LONG_MS = 300_000;
const TWICE = [0, 2, 4, 6, 8];

const BOARD = ['@bull-board/api', '@bull-board/ui'];
const TYPES = '@types/node';

/** How a manager is called, and what it is to know beside its registry. */
const managers = [
  { manager: 'npm', command: ['npm'], settings: {} },
  { manager: 'pnpm', command: [process.execPath, join(PACKAGES, 'pnpm/bin/pnpm.cjs')], settings: {} },
  { manager: 'yarn', command: yarn(), settings: { YARN_NODE_LINKER: 'node-modules' } },
  { manager: 'yarn without node_modules', command: yarn(), settings: { YARN_NODE_LINKER: 'pnp' } },
  { manager: 'bun', command: [bun], settings: {} },
];
const forms = [
  {
    form: 'chasquimq',
    library: 'chasquimq',
    manifest: { dependencies: { chasquimq: version, [TYPES]: versionOf(TYPES) } },
  },
  { form: 'bullmq, an alias', library: 'bullmq', manifest: aliased(`chasquimq@${version}`) },
  { form: 'bullmq, of its version', library: 'bullmq', manifest: aliased('@chasquimq/as-bullmq@^6.7.0') },
];
const resolutions = {
  node16: ['--module', 'node16'],
  nodenext: ['--module', 'nodenext'],
  bundler: ['--module', 'preserve', '--moduleResolution', 'bundler'],
  'bundler, without preserve': ['--module', 'esnext', '--moduleResolution', 'bundler'],
};
type Resolution = keyof typeof resolutions;
/** By where it lies: the one that builds this package, the newest, and the oldest that reads its types. */
const compilers: Record<string, Resolution[]> = {
  [join(ROOT, 'node_modules/typescript')]: ['node16', 'nodenext', 'bundler'],
  [join(PACKAGES, 'typescript-newest')]: ['node16', 'nodenext', 'bundler'],
  [join(PACKAGES, 'typescript-oldest')]: ['node16', 'nodenext', 'bundler, without preserve'],
};
const typed = [
  ...Object.entries(compilers).flatMap(([compiler, each]) => each.map((form) => typing('chasquimq', compiler, form))),
  ...['bullmq, an alias', 'bullmq, of its version'].map((form) =>
    typing(form, join(ROOT, 'node_modules/typescript'), 'nodenext'),
  ),
];

function typing(form: string, compiler: string, resolution: Resolution) {
  const { version } = JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8')) as { version: string };
  return { form, compiler, version, resolution };
}

/** A project with tools that ask for BullMQ, and get that under its name. */
function aliased(target: string) {
  const board = Object.fromEntries([...BOARD, TYPES].map((name) => [name, versionOf(name)]));
  return { dependencies: { bullmq: `npm:${target}`, ...board } };
}

/** npm alone refuses a peer of another version; the others warn. */
const FOR_NPM = { overrides: { bullmq: '$bullmq' } };

function yarn(): string[] {
  return [process.execPath, join(PACKAGES, '@yarnpkg/cli-dist/bin/yarn.js')];
}

let folder = '';
let registry: Registry;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chasquimq-install-'));
  registry = await Registry.start(folder, [...BOARD, TYPES]);
}, LONG_MS);
afterAll(async () => {
  await registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(cwd: string, [command, ...args]: string[], more: NodeJS.ProcessEnv = {}): Promise<string> {
  const { PATH, TMPDIR } = process.env;
  const home = join(folder, 'home');
  const env = {
    ...{ PATH, TMPDIR, HOME: home, CONNECTION: JSON.stringify(connection) },
    ...{ npm_config_registry: registry.url, npm_config_update_notifier: 'false', npm_config_audit: 'false' },
    ...{ YARN_NPM_REGISTRY_SERVER: registry.url, YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1' },
    ...{ YARN_ENABLE_TELEMETRY: '0', YARN_GLOBAL_FOLDER: join(home, 'yarn'), YARN_NPM_MINIMAL_AGE_GATE: '0' },
    ...more,
  };
  const done = promisify(execFile)(command, args, { cwd, env, timeout: LONG_MS });
  const { stdout } = await done.catch((error: Error & { stdout: string; stderr: string }) => {
    throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`);
  });
  return stdout;
}

/** An empty project, but for the programs of this test, into which a manager has installed what it asks for. */
async function install(form: string, manager: string): Promise<string> {
  const project = join(folder, ...[form, manager].map((name) => name.replaceAll(/\W+/g, '-')));
  if (existsSync(project)) return project;
  const { manifest, library = '' } = forms.find((each) => each.form === form) ?? {};
  const { command = [], settings } = managers.find((each) => each.manager === manager) ?? {};
  mkdirSync(project, { recursive: true });
  const allowed = manager === 'npm' && form === 'bullmq, an alias' ? FOR_NPM : {};
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, ...manifest, ...allowed }));
  const ofProject = readdirSync(join(PROGRAMS, 'installed')).map((name) => join(PROGRAMS, 'installed', name));
  const ofConsumer = ['esm.mts', 'commonjs.cts', 'bundled.mts'].map((name) => join(CONSUMER, name));
  for (const program of [...ofProject, ...ofConsumer, BOARD_TYPES, join(PROGRAMS, 'quick-start.mjs')]) {
    const text = readFileSync(program, 'utf8').replaceAll(/(?<=['`])(LIBRARY|chasquimq)(?=['`/])/g, library);
    writeFileSync(join(project, basename(program)), text);
  }
  await run(project, [...command, 'install'], settings);
  return project;
}

const tracers = useStage(chasquimq);
describe.each(forms)('as $form', ({ form, library }) => {
  const stage = useStage(chasquimq);

  it.each(managers)(
    '$manager installs it, and it runs',
    { timeout: LONG_MS },
    async ({ manager, command, settings }) => {
      const project = await install(form, manager);
      // a project without node_modules has its packages found by the manager
      const node = manager.includes('without') ? [...command, 'node'] : [process.execPath];
      for (const file of ['start.mjs', 'start.cjs']) {
        const env = { ...settings, QUEUE: stage.name(file) };
        const told = JSON.parse((await run(project, [...node, file], env)).trim());
        expect(told).toEqual({ results: [...TWICE, ...TWICE], reason: 'no' });
      }
      const sandboxed = await run(project, [...node, 'sandbox.mjs'], { ...settings, QUEUE: stage.name('sandbox') });
      const [inProcess, inThread] = [[false, true, 'function'], [true, false, 'undefined']]; // prettier-ignore
      expect(JSON.parse(sandboxed)).toEqual([inProcess, inThread]);
      if (library === 'bullmq') {
        const told = await run(project, [...node, 'board.cjs'], { ...settings, QUEUE: stage.name('start.mjs') });
        expect(JSON.parse(told)).toEqual({ same: true, completed: 10 });
      }
    },
  );
});

it('a tracer that goes by the files of BullMQ sees each call', { timeout: LONG_MS }, async () => {
  const project = await install('bullmq, of its version', 'npm');
  const told = JSON.parse(await run(project, [process.execPath, 'tracer.cjs'], { QUEUE: tracers.name() })) as object;
  const added = ['FlowProducer.add', 'Queue.add', 'Queue.addBulk'];
  const processed = Array.from({ length: 3 }, () => 'Worker.callProcessJob');
  const version = expect.stringMatching(/^6\.7\.\d+$/) as unknown;
  expect(told).toEqual({ version, seen: [...added, ...processed], same: true });
});

it.each(typed)('TypeScript $version reads the types of $form ($resolution)', { timeout: LONG_MS }, async (use) => {
  const project = await install(use.form, 'npm');
  const imports = use.resolution === 'bundler, without preserve' ? ['bundled.mts'] : ['esm.mts', 'commonjs.cts'];
  const files = [...imports, ...(use.form === 'chasquimq' ? [] : ['board.mts'])];
  const strict = ['--strict', '--noEmit', '--skipLibCheck', 'false', '--target', 'es2022', '--types', 'node'];
  const tsc = [process.execPath, join(use.compiler, 'bin/tsc'), ...resolutions[use.resolution]];
  await run(project, [...tsc, ...strict, ...files]);
});

it('npm refuses the alias without the override', { timeout: LONG_MS }, async () => {
  const project = join(folder, 'refused');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, ...aliased(`chasquimq@${version}`) }));
  await expect(run(project, ['npm', 'install'])).rejects.toThrow('ERESOLVE');
});

it(
  'npm brings the addon of this platform alone, with the licenses of what is linked into it',
  { timeout: LONG_MS },
  async () => {
    const modules = join(await install('chasquimq', 'npm'), 'node_modules');
    const [platform, ...others] = readdirSync(join(modules, '@chasquimq'));
    expect(others).toEqual([]);
    const addon = join(modules, '@chasquimq', platform);
    for (const place of [join(modules, 'chasquimq'), addon]) expect(readdirSync(place)).toContain('LICENSE');
    const notices = readFileSync(join(addon, 'THIRD-PARTY-NOTICES.md'), 'utf8');
    for (const crate of ['redis', 'ring', 'rustls', 'tokio', 'napi']) {
      expect(notices).toMatch(new RegExp(`^## ${crate} \\d[^]*?^License: .+\n\n\`\`\`text\n`, 'm'));
    }
  },
);
