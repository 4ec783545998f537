import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as bullmq from 'bullmq';
import { afterAll, describe, expect, it } from 'vitest';
import * as chasquimq from '../../src/index.js';
import { aclRule } from '../../src/tools/doctor/acl.js';
import { differences } from '../../src/tools/doctor/differences.js';
import { examine } from '../../src/tools/doctor/examine.js';
import { codeBaseOf } from '../../src/tools/doctor/files.js';
import { NOT_EXPORTED } from '../../src/tools/doctor/exports.js';
import type { Finding } from '../../src/tools/doctor/finding.js';
import { optionsIn } from '../../src/tools/doctor/options.js';
import { judgeServer } from '../../src/tools/doctor/server.js';
import { usesOf } from '../../src/tools/doctor/uses.js';
import { documentedRule } from '../support/acl.js';
import { cli } from '../support/cli.js';
import { closedPort } from '../support/redis.js';
import { useOwnServer } from '../support/use-own-server.js';

const folder = mkdtempSync(join(tmpdir(), 'chasquimq-doctor-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a code base and gives its folder. */
function write(name: string, files: Record<string, string>): string {
  const root = join(folder, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function findings(text: string, path = 'a.ts'): Finding[] {
  return examine(codeBaseOf([{ path, text }])).findings.filter(({ places }) => places.length > 0);
}

/** Ids and lines of what is found in a file that imports BullMQ in its first line. */
function found(...lines: string[]): [string, number[]][] {
  const text = ["import { Queue, Worker } from 'bullmq';", ...lines].join('\n');
  return findings(text)
    .filter(({ kind }) => kind !== 'difference' && kind !== 'option')
    .map(({ id, places }) => [id, places.map(({ line }) => line)]);
}

const FIVE = `import { Queue, QueueScheduler } from 'bullmq';
import IORedis from 'ioredis';
const connection = new IORedis({ host: 'redis', enableReadyCheck: false, readOnly: true });
export const mail = new Queue('mail', { connection });
await mail.add('news', {}, { repeat: { pattern: '0 8 * * *' } });
await mail.getRepeatableJobs();
`;

describe('doctor', () => {
  const own = useOwnServer('--maxmemory-policy', 'allkeys-lru');
  const base = write('base', {
    'package.json': JSON.stringify({ dependencies: { bullmq: '^5.81.0', 'judoscale-bullmq': '1' } }, null, 2),
    'src/mail.ts': FIVE,
    'src/users.ts': "import { mail } from './mail.js';\nmail.client.then((client) => client.keys('bull:mail:*'));\n",
    'src/other.ts': 'export const client = { repeat: true };\n',
    'node_modules/bullmq/index.js': FIVE,
    'dist/mail.js': FIVE,
    'README.md': FIVE,
  });
  symlinkSync(base, join(base, 'src/circle'));

  it('tells what it found in a code base and a server, as JSON', async () => {
    const url = `redis://127.0.0.1:${own.server.port}`;
    const { code, stdout, stderr } = await cli(['doctor', base, '--json', '--url', url]);
    expect([code, stderr]).toEqual([0, '']);
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({ path: base, files: 3, concerned: 2, bullmq: ['^5.81.0'], unreadable: [] });
    // options are told once, here or as differences
    const seen = told.findings.filter(({ kind }: Finding) => kind !== 'difference' && kind !== 'option');
    expect(
      seen.map(({ id, impact, places }: Finding) => [id, impact, ...places.map(({ file, line }) => `${file}:${line}`)]),
    ).toEqual([
      ['v5-repeat', 'breaking', 'src/mail.ts:5'],
      ['v5-repeatable-jobs', 'breaking', 'src/mail.ts:6'],
      ['v5-client', 'breaking', 'src/users.ts:2'],
      ['v5-queue-scheduler', 'breaking', 'src/mail.ts:1'],
      ['tool-judoscale-bullmq', 'breaking', 'package.json:4'],
      ['raw-keys', 'breaking', 'src/users.ts:2'],
    ]);
    expect(told.server.url).toBe(`127.0.0.1:${own.server.port}`);
    const verdicts = Object.fromEntries(
      told.server.findings.map(({ id, verdict }: { id: string; verdict: string }) => [id, verdict]),
    );
    expect(verdicts).toMatchObject({ version: 'fit', eviction: 'risk', persistence: 'risk' });
    expect(told.acl).toBe(aclRule('bull').join(' '));
    expect((await own.redis.keys('*')).length).toBe(0);
    expect(await own.redis.call('FUNCTION', 'LIST')).toEqual([]);
  });

  it('tells who may replace the functions that others call, where it may ask', async () => {
    const url = (user: string) => `redis://${user}127.0.0.1:${own.server.port}`;
    const loaders = async (user = '') => {
      const { stdout } = await cli(['doctor', base, '--json', '--url', url(user)]);
      const told = JSON.parse(stdout) as { server: { findings: { id: string; verdict: string; text: string }[] } };
      return told.server.findings.filter(({ id }) => id === 'loaders');
    };
    expect(await loaders()).toEqual([]);
    await own.redis.acl('SETUSER', 'few', 'on', 'nopass', '+@all', '-acl', '-function|load');
    await own.redis.acl('SETUSER', 'gone', 'off', 'nopass', '+@all');
    expect(await loaders()).toEqual([]);
    await own.redis.acl('SETUSER', 'many', 'on', 'nopass', '+@all');
    expect(await loaders()).toEqual([
      expect.objectContaining({
        verdict: 'hint',
        text: expect.stringContaining('The users default and many may load'),
      }),
    ]);
    expect(await loaders('few:any@')).toEqual([]);
    await own.redis.acl('DELUSER', 'few', 'gone', 'many');
  });

  it('shows the same to people, and fails when it is told to', async () => {
    const { code, stdout } = await cli(['doctor', base, '--no-server', '--strict']);
    expect(code).toBe(1);
    expect(stdout).toContain('3 files with code, 2 of them with queues; package.json asks for bullmq ^5.81.0');
    expect(stdout).toContain('Breaks: change this before you move');
    expect(stdout).toMatch(/^ {6}src\/mail\.ts:5$/m);
    expect(stdout).toContain('Server: none was asked');
    expect(stdout).toMatch(/^Result: \d+ to change, \d+ to check, \d+ without an impact$/m);
    const clean = write('clean', {
      'a.ts': "import { Queue } from 'chasquimq/v5';\nnew Queue('a').getRepeatableJobs();\n",
    });
    expect((await cli(['doctor', clean, '--no-server', '--strict'])).code).toBe(0);
  });

  it('reads what there is, and says what it cannot read', async () => {
    const { code, stdout, stderr } = await cli(['doctor', join(folder, 'nothing')]);
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      `chasquimq: ${join(folder, 'nothing')}: there is no such file or folder.\n`,
    ]);
    const file = await cli(['doctor', join(base, 'src/mail.ts'), '--no-server', '--json']);
    expect(JSON.parse(file.stdout)).toMatchObject({ files: 1, concerned: 1, server: null });
    const empty = write('empty', { 'notes.txt': '' });
    const nothing = await cli(['doctor', empty, '--no-server']);
    expect(nothing.stdout).toContain('No file imports bullmq: is the path right?');
    const broken = write('broken', { 'package.json': '{', 'a.ts': "import 'bullmq'; const x = `${" });
    expect((await cli(['doctor', broken, '--no-server'])).code).toBe(0);
  });

  it('reads what editors on Windows write', async () => {
    const text = FIVE.replaceAll('\n', '\r\n');
    const manifest = JSON.stringify({ dependencies: { bullmq: '5.1.0' } }, null, 2).replaceAll('\n', '\r\n');
    const windows = write('windows', { 'package.json': `\ufeff${manifest}`, 'mail.ts': `\ufeff${text}` });
    const unix = write('unix', { 'package.json': manifest, 'mail.ts': FIVE });
    const read = async (path: string) =>
      JSON.parse((await cli(['doctor', path, '--no-server', '--json'])).stdout) as object;
    const expected = await read(unix);
    expect(await read(windows)).toEqual({ ...expected, path: windows });
    expect(expected).toMatchObject({ bullmq: ['5.1.0'], concerned: 1 });
  });

  it('tells of the code base all the same where the server cannot be asked', async () => {
    const port = await closedPort();
    const { code, stdout, stderr } = await cli(['doctor', base, '--url', `redis://:hunter2@127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(stdout).toContain('Breaks: change this before you move');
    expect(stderr).toContain(`chasquimq: The server at 127.0.0.1:${port} cannot be used`);
    expect(stdout + stderr).not.toContain('hunter2');
  });
});

describe('doctor, reading code', () => {
  it.each<[string, string[], [string, number[]][]]>([
    ['comments are no code', ['// queue.getRepeatableJobs()', '/* queue.getRepeatableJobs() */'], []],
    ['texts are no code', ["const a = 'queue.getRepeatableJobs()';", 'const b = `queue.getRepeatableJobs()`;'], []],
    [
      'expressions in template texts are',
      ['const a = `there are ${await queue.getRepeatableJobs()}`;'],
      [['v5-repeatable-jobs', [2]]],
    ],
    [
      'a regular expression is no code',
      ['const a = /queue.getRepeatableJobs(")/;', 'job.discard();'],
      [['v5-discard', [3]]],
    ],
    ['a slash behind a value divides', ['const a = b / c; job.discard(); d / e;'], [['v5-discard', [2]]]],
    [
      'optional calls and types are looked through',
      ['queue?.getRepeatableJobs?.();', 'queue.removeRepeatable<A>(1);'],
      [['v5-repeatable-jobs', [2, 3]]],
    ],
    ['repeat of something else is none', ['ui.play({ repeat: true });', 'text.repeat(3);'], []],
    [
      'repeat among the default options is one',
      ['new Queue("a", { defaultJobOptions: { repeat: { every: 1 } } });'],
      [['v5-repeat', [2]]],
    ],
    [
      'repeat of a job in a list is one',
      ['queue.addBulk([{ name: "a", data: {}, opts: { repeat: { every: 1 } } }]);'],
      [['v5-repeat', [2]]],
    ],
    [
      'debounce, and its event',
      ['queue.add("a", {}, { debounce: { id: "x" } });', 'events.on("debounced", f);'],
      [['v5-debounce', [2, 3]]],
    ],
    [
      'clients of queues, and of nothing else',
      ['const a = new Queue();', 'await a.client;', 'await http.client;'],
      [['v5-client', [3]]],
    ],
    [
      'a type with such a field is no option',
      ['interface Redis { readOnly: string }', 'type Redis = { readOnly: string };'],
      [],
    ],
    [
      'the state paused',
      [
        "queue.clean(0, 0, 'paused');",
        "queue.getJobs(['wait', 'paused']);",
        "console.log('paused');",
        'counts.paused;',
      ],
      [['v5-paused-state', [2, 3, 5]]],
    ],
    [
      'what is not exported',
      ["import { Relay, type Job as It } from 'bullmq';", "import 'bullmq/dist/cjs/classes/job';"],
      [
        ['export-Relay', [2]],
        ['deep-import', [3]],
      ],
    ],
    [
      'keys that are spelled out',
      ["redis.del('bull:mail:wait');", "const a = 'redbull:b';", 'const b = `bull:${queue}:wait`;'],
      [['raw-keys', [2, 4]]],
    ],
  ])('%s', (_, lines, expected) => {
    expect(found(...lines)).toEqual(expected);
  });

  it('options without an effect and those that are refused are told where they are given to a connection', () => {
    const options = (text: string) =>
      optionsIn([{ path: 'a.ts', uses: usesOf(text) }]).map(({ id, impact }) => [id, impact]);
    expect(
      options('new Worker("a", f, { connection: { readOnly: true, noDelay: true, host: "a" }, runRetryDelay: 5 });'),
    ).toEqual([
      ['option-readOnly', 'breaking'],
      ['option-noDelay', 'none'],
      ['option-runRetryDelay', 'none'],
    ]);
    expect(options('const redisOptions: RedisOptions = { retryStrategy: () => 5 };')).toEqual([
      ['option-retryStrategy', 'check'],
    ]);
    expect(options('const connection = { [key]: 1, lazyConnect };')).toEqual([['option-lazyConnect', 'none']]);
    expect(
      options(
        'const line = { noDelay: "yes" }; interface Redis { readOnly: string } type Redis = { readOnly: string };',
      ),
    ).toEqual([]);
  });

  it('what chasquimq/v5 brings is told only where the plain classes are used', () => {
    const five = {
      path: 'mail.ts',
      text: "import { Queue } from 'chasquimq/v5';\nexport const mail = new Queue('mail');\n",
    };
    const user = {
      path: 'user.ts',
      text: "import { mail } from './mail.js';\nmail.client;\nawait mail.getJobCounts('paused');",
    };
    const gone = { path: 'gone.ts', text: "import { Scripts } from 'chasquimq/v5';" };
    const plain = { path: 'plain.ts', text: "import { Queue } from 'chasquimq';" };
    const idioms = (...files: { path: string; text: string }[]) =>
      examine(codeBaseOf(files))
        .findings.filter(({ kind }) => kind === 'idiom')
        .flatMap(({ id, places }) => places.map(({ file }) => `${id} ${file}`));
    expect(idioms(five, user)).toEqual([]);
    expect(idioms(five, user, plain)).toEqual(['v5-client user.ts', 'v5-paused-state user.ts']);
    expect(idioms(five, gone)).toEqual(['v5-inner-exports gone.ts']);
  });

  it("code for BullMQ's paid edition is read as that for chasquimq/v5, which its package becomes", () => {
    const pro = [
      "import { QueuePro } from '@taskforcesh/bullmq-pro';",
      "const mail = new QueuePro('mail', { connection: { readOnly: true } });",
      "await mail.add('news', {}, { repeat: { every: 1000 } });",
    ].join('\n');
    const told = findings(pro).map(({ id, places }) => [id, ...places.map(({ line }) => line)]);
    expect(told).toContainEqual(['connection-options-without-effect', 2]);
    expect(told.map(([id]) => id).filter((id) => /^v5-|^deep|^export/.test(String(id)))).toEqual([]);
    const manifest = '{ "dependencies": { "@taskforcesh/bullmq-pro": "^7.46.0" } }';
    const [tool] = findings(manifest, 'package.json');
    expect([tool.id, tool.impact]).toEqual(['tool-@taskforcesh/bullmq-pro', 'check']);
    expect(tool.text).toContain('"npm:@chasquimq/as-bullmq-pro@^7.46.0"');
  });

  it("bull-board's adapter for the paid edition, which shows jobs of groups twice, is found", () => {
    const board = (adapter: string) => findings(`import { X } from '@bull-board/api/${adapter}';`);
    expect(board('bullMQAdapter')).toEqual([]);
    const [found] = board('bullMQProAdapter');
    expect(found).toMatchObject({ id: 'tool-pro-adapter', impact: 'breaking', places: [{ file: 'a.ts', line: 1 }] });
    expect(found.text).toContain('use BullMQAdapter');
  });

  it('a file without queues is left alone, whatever it calls', () => {
    expect(findings('cache.getRepeatableJobs(); job.discard();')).toEqual([]);
  });

  it('each way to import counts', () => {
    for (const head of [
      "const { Queue } = require('bullmq');",
      "const { Queue } = await import('bullmq');",
      "export { Queue } from 'bullmq';",
      "import * as bullmq from 'bullmq';",
      "import { InjectQueue } from '@nestjs/bullmq';",
      "import { Queue } from 'chasquimq';",
    ]) {
      expect(findings(`${head}\nqueue.getRepeatableJobs();`).map(({ id }) => id)).toEqual(['v5-repeatable-jobs']);
    }
  });

  it('finds differences by what they look like', () => {
    const patterns = differences.filter(({ detect = [] }) => detect.length > 0);
    for (const { id, detect = [] } of patterns) {
      for (const pattern of detect) {
        const to = 'option' in pattern && pattern.to ? `thing.${pattern.to}('a', ` : "new Worker('a', f, ";
        const line =
          'call' in pattern
            ? `thing.${pattern.call}(1);`
            : 'event' in pattern
              ? `worker.on('${pattern.event}', f);`
              : `${to}{ connection: { ${pattern.option}: 1 }, ${pattern.option}: 1 });`;
        const ids = findings(`import 'bullmq';\n${line}`).map((finding) => finding.id);
        expect(ids, line).toContain(id);
      }
    }
    expect(findings("import 'bullmq';").filter(({ kind }) => kind === 'difference')).toEqual([]);
  });

  it('knows whose argument an option is in, however deep', () => {
    const text =
      'q.upsertJobScheduler("a", { every: 1 }, { opts: { parent: p, list: [{ deep: 1 }] } }); const a = { parent: 1 };';
    const options = usesOf(text).filter(({ kind }) => kind === 'option');
    expect(options.map(({ name, to }) => [name, to])).toEqual([
      ...['every', 'opts', 'parent', 'list', 'deep'].map((name) => [name, 'upsertJobScheduler']),
      ['parent', ''],
    ]);
  });

  it('knows the names that BullMQ exports and this package does not', () => {
    const ours = new Set(Object.keys(chasquimq));
    const missing = Object.keys(bullmq).filter((name) => name !== 'default' && !ours.has(name));
    // its type is exported, and of an import nobody can tell which of both is meant
    expect(missing.filter((name) => !NOT_EXPORTED.has(name))).toEqual(['RedisConnection']);
    const theirs = new Set(Object.keys(bullmq));
    expect([...NOT_EXPORTED.keys()].filter((name) => !theirs.has(name))).toEqual([]);
  });
});

describe('doctor, judging a server', () => {
  const GOOD = {
    redis_version: '7.2.4',
    role: 'master',
    loading: '0',
    maxmemory_policy: 'noeviction',
    used_memory: '1000',
    maxmemory: '100000',
    total_system_memory: '1000000',
    aof_enabled: '1',
    cluster_enabled: '0',
    connected_clients: '5',
    maxclients: '10000',
  };

  const judged = (change: Record<string, string>, isCluster = false) => {
    const fields = Object.entries({ ...GOOD, ...change }).map(([name, value]) => `${name}:${value}`);
    return judgeServer(['# Server', ...fields].join('\r\n'), isCluster).filter(({ verdict }) => verdict !== 'fit');
  };

  it('finds nothing wrong with a good one', () => {
    expect(judged({})).toEqual([]);
  });

  it.each<[Record<string, string>, string, string]>([
    [{ redis_version: '6.2.14' }, 'version', 'unfit'],
    [{ valkey_version: '7.1.0' }, 'version', 'unfit'],
    [{ role: 'slave' }, 'role', 'unfit'],
    [{ loading: '1' }, 'loading', 'risk'],
    [{ maxmemory_policy: 'volatile-lru' }, 'eviction', 'risk'],
    [{ used_memory: '90000' }, 'memory', 'risk'],
    [{ maxmemory: '0' }, 'memory', 'hint'],
    [{ aof_enabled: '0' }, 'persistence', 'risk'],
    [{ aof_last_write_status: 'err' }, 'persistence', 'risk'],
    [{ cluster_enabled: '1' }, 'cluster', 'unfit'],
    [{ connected_clients: '9500' }, 'clients', 'risk'],
  ])('%j', (change, id, verdict) => {
    expect(judged(change)).toMatchObject([{ id, verdict }]);
  });

  it('holds a server to how it is used, and says when it knows nothing', () => {
    expect(judged({ cluster_enabled: '1' }, true)).toEqual([]);
    expect(judged({}, true)).toMatchObject([{ id: 'cluster', verdict: 'unfit' }]);
    expect(judgeServer('', false)).toMatchObject([{ id: 'version', verdict: 'risk' }]);
  });

  it('grants what the documentation grants', () => {
    expect(aclRule('bull')).toEqual(documentedRule());
    expect(aclRule('{app}')).toContain('~{app}:*:chasqui:*');
    expect(aclRule('bull', { cluster: true })).toContain('+cluster|slots');
  });
});
