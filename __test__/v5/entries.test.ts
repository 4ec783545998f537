// The two entries beside each other, `chasquimq` and `chasquimq/v5`; and the second one where ioredis is not installed.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import * as plain from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DROPPED = ['getRepeatableJobs', 'removeRepeatable', 'removeRepeatableByKey', 'repeat', 'client', 'redisVersion'];
const HOUR = 3_600_000;

describe('the entries', () => {
  const stage = useStage(chasquimq);
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  });

  function keep<T extends { close(): Promise<void> }>(each: T): T {
    opened.push(each);
    return each;
  }
  const queueOf5 = () => keep(new v5.Queue(stage.name(), { connection: { ...connection } }));
  const queueOf6 = () => keep(new plain.Queue(stage.name(), { connection: { ...connection } }));

  it('objects of chasquimq/v5 are those of chasquimq, too', async () => {
    const queue = queueOf5();
    expect(queue).toBeInstanceOf(plain.Queue);
    expect(queue).toBeInstanceOf(plain.QueueBase);
    const job = await queue.add('x', {});
    expect(job).toBeInstanceOf(v5.Job);
    expect(job).toBeInstanceOf(plain.Job);
    expect(await queue.getJob(job.id!)).toBeInstanceOf(v5.Job);
    expect((await queue.addBulk([{ name: 'y', data: {} }]))[0]).toBeInstanceOf(v5.Job);
    expect((await queue.getWaiting())[0]).toBeInstanceOf(v5.Job);
    expect((await queue.findJobs({ name: 'y' })).jobs[0]).toBeInstanceOf(v5.Job);
    expect((await queue.getLatency()).oldest).toBeGreaterThanOrEqual(0);
    expect(await queue.moveJobs(`${stage.name()}-other`, { name: 'y' })).toBe(1);
    expect(await queue.cancelJob(job.id!)).toBe('cancelled');
    const flows = keep(new v5.FlowProducer({ connection: { ...connection } }));
    expect(flows).toBeInstanceOf(plain.FlowProducer);
    expect((await flows.add({ name: 'z', queueName: stage.name() })).job).toBeInstanceOf(v5.Job);
    expect(keep(new v5.Worker(stage.name(), null, { connection: { ...connection } }))).toBeInstanceOf(plain.Worker);
    for (const name of Object.keys(plain).filter((each) => each.endsWith('Error'))) {
      expect(v5[name as 'UnrecoverableError']).toBe(plain[name as 'UnrecoverableError']);
    }
  });

  it('are of one queue', async () => {
    const [six, five] = [queueOf6(), queueOf5()];
    await five.add('tick', {}, { repeat: { every: HOUR } });
    const [scheduler] = await six.getJobSchedulers();
    expect([scheduler.name, scheduler.every]).toEqual(['tick', HOUR]);
    await six.pause();
    const job = await six.add('x', {});
    expect((await five.getJobs('paused')).map(({ id }) => id)).toEqual([job.id]);
    expect(await five.getJobCounts('waiting')).toEqual({ waiting: 0, paused: 1 });
  });

  it('chasquimq has nothing that BullMQ 6 has dropped', () => {
    const queue = queueOf6();
    expect(DROPPED.filter((name) => name in queue)).toEqual([]);
    const five = queueOf5();
    expect(DROPPED.filter((name) => !(name in five))).toEqual([]);
  });

  it('chasquimq warns once of `repeat`, and names both ways on', async () => {
    const warnings: (Error & { code?: string })[] = [];
    const hear = (warning: Error) => void warnings.push(warning);
    process.on('warning', hear);
    try {
      await queueOf5().add('tick', {}, { repeat: { every: HOUR } });
      const queue = queueOf6();
      const opts = { repeat: { every: HOUR } } as plain.JobsOptions;
      for (const name of ['a', 'b']) expect(await (await queue.add(name, {}, opts)).getState()).toBe('waiting');
      await new Promise(setImmediate); // a warning is emitted in the next turn
    } finally {
      process.off('warning', hear);
    }
    expect(warnings.map(({ name, code }) => [name, code])).toEqual([['ChasquiMQWarning', 'CHASQUIMQ_REPEAT_IGNORED']]);
    expect(warnings[0].message).toMatch(/upsertJobScheduler\(\).*"chasquimq\/v5"/);
  });
});

describe('without ioredis', () => {
  const stage = useStage(chasquimq);
  let folder = '';
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('chasquimq/v5 works, and `client` says what is missing', async () => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-v5-'));
    mkdirSync(join(folder, 'node_modules'));
    for (const part of ['dist', 'index.cjs', 'package.json']) {
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    }
    const addon = readdirSync(ROOT).find((name) => name.endsWith('.node')) ?? '';
    symlinkSync(join(ROOT, addon), join(folder, addon));
    symlinkSync(join(ROOT, 'node_modules/cron-parser'), join(folder, 'node_modules/cron-parser'), 'junction');
    const program = stage.keep(
      Program.startText(
        `process.chdir(process.env.FOLDER);
         const { Queue } = require(process.env.FOLDER + '/dist/cjs/v5/index.js');
         const queue = new Queue(process.env.QUEUE, { connection: JSON.parse(process.env.CONNECTION) });
         (async () => {
           console.log('ready', await queue.waitUntilReady());
           console.log('version', /^\\d/.test(queue.redisVersion));
           await queue.add('x', {}, { repeat: { every: 3600000 } });
           console.log('repeats', (await queue.getRepeatableJobs()).length);
           await queue.client.catch((error) => console.log('client', error.code, error.message));
           await queue.close();
         })();`,
        { kind: 'commonjs', env: { FOLDER: folder, QUEUE: stage.name() } },
      ),
    );
    expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
    expect(program.lines).toEqual([
      'ready undefined',
      'version true',
      'repeats 1',
      'client ERR_NO_IOREDIS `client` is an ioredis client, and ioredis is not installed: npm install ioredis',
    ]);
  });
});
