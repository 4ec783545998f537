// A project of BullMQ's paid edition that changes one line of its manifest: the package that stands in for it, installed under its name from
// a registry of this machine. Its program keeps its imports, as ES module and as CommonJS, and its types hold.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { Registry, ROOT, versionOf } from '../support/registry.js';
import { useStage } from '../support/stage.js';

const LONG_MS = 120_000;
const PRO = '@taskforcesh/bullmq-pro';
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/** A package beside it, which asks for a version of the paid edition. */
const TOOL = { name: 'a-tool', version: '1.0.0', main: 'index.js', peerDependencies: { [PRO]: '^7.0.0' } };
const TOOL_CODE = `module.exports = require('${PRO}').QueuePro;\n`;

const PROGRAM = `
interface Mail { to: string }
async function main() {
  const connection = JSON.parse(process.env.CONNECTION!);
  const name = process.env.QUEUE!;
  const queue = new QueuePro<Mail, string>(name, { connection });
  const events = new QueueEventsPro(name, { connection, lastEventId: '0-0' });
  const paused = new Promise<string>((told) => events.on('group-paused', ({ groupId }) => told(groupId)));
  await queue.pauseGroup('ben');
  for (const to of ['ana', 'ana', 'ben']) await queue.add('mail', { to }, { group: { id: to, maxSize: 2 } });
  const refused = await queue.add('mail', { to: 'ana' }, { group: { id: 'ana', maxSize: 2 } }).catch((error: Error) => error);
  const batches: string[] = [];
  const worker = new WorkerPro<Mail, string>(
    name,
    async (job) => {
      const batch: JobPro<Mail, string>[] = job.getBatch();
      batches.push(batch.map(({ gid }) => gid).join());
      return job.id!;
    },
    { connection, batch: { size: 10 }, group: { concurrency: 5 } },
  );
  await new Promise<void>((done) => worker.on('drained', () => done()));
  // what BullMQ 5 has, and 6 has dropped
  await queue.add('tick', { to: 'all' }, { repeat: { every: 3_600_000 } });
  const groups = await queue.getGroups();
  const repeats = (await queue.getRepeatableJobs()).length;
  console.log(JSON.stringify({ batches, groups, repeats, full: refused instanceof GroupMaxSizeExceededError, paused: await paused }));
  await Promise.all([worker, events, queue].map((opened) => opened.close()));
}
main();
`;
const NAMES = '{ GroupMaxSizeExceededError, JobPro, QueueEventsPro, QueuePro, WorkerPro }';
const PROGRAMS = {
  'app.mts': `import ${NAMES} from '${PRO}';\n${PROGRAM}`,
  'app.cts': `import pro = require('${PRO}');
    import tool = require('a-tool');
    import ${NAMES} from '${PRO}';
    if (tool !== pro.QueuePro || pro.QueuePro !== pro.Queue) throw new Error('there are two of it');
    ${PROGRAM}`,
};

const run = promisify(execFile);
let folder = '';
let project = '';
let registry: Registry;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chasquimq-install-pro-'));
  registry = await Registry.start(folder, ['@types/node']);
  const [tool, home] = ['tool', 'home'].map((name) => join(folder, name));
  project = join(folder, 'project');
  for (const each of [tool, home, project]) mkdirSync(each);
  writeFileSync(join(tool, 'package.json'), JSON.stringify(TOOL));
  writeFileSync(join(tool, 'index.js'), TOOL_CODE);
  writeFileSync(join(tool, 'index.d.ts'), `declare const tool: unknown;\nexport = tool;\n`);
  const dependencies = {
    ...{ [PRO]: 'npm:@chasquimq/as-bullmq-pro@^7.46.0', [TOOL.name]: `file:../${TOOL.name}-${TOOL.version}.tgz` },
    '@types/node': versionOf('@types/node'),
  };
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, dependencies }));
  for (const [file, text] of Object.entries(PROGRAMS)) writeFileSync(join(project, file), text);
  const settings = {
    npm_config_registry: registry.url,
    npm_config_audit: 'false',
    npm_config_update_notifier: 'false',
  };
  const env = { PATH: process.env.PATH, HOME: home, ...settings };
  await run('npm', ['pack', tool], { cwd: folder, env });
  await run('npm', ['install', '--strict-peer-deps'], { cwd: project, env });
  const strict = [
    '--strict',
    '--skipLibCheck',
    'false',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--types',
    'node',
  ];
  const typed = run(process.execPath, [TSC, ...strict, ...Object.keys(PROGRAMS)], { cwd: project });
  await typed.catch(({ stdout }: { stdout: string }) => {
    throw new Error(stdout);
  });
}, LONG_MS);
afterAll(async () => {
  await registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("a program of BullMQ's paid edition", () => {
  const stage = useStage(chasquimq);

  it.each(['app.mjs', 'app.cjs'])(
    '%s runs on the package that stands in for it',
    { timeout: LONG_MS },
    async (file) => {
      const env = { ...process.env, CONNECTION: JSON.stringify(connection), QUEUE: stage.name(file) };
      const { stdout } = await run(process.execPath, [file], { cwd: project, env });
      expect(JSON.parse(stdout)).toEqual({
        batches: ['ana,ana'],
        groups: [{ id: 'ben', status: 'paused' }],
        repeats: 1,
        full: true,
        paused: 'ben',
      });
    },
  );
});
