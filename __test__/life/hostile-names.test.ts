// What users of a program may choose (names, ids, data, errors) is never run as code and never becomes a key of anything but its queue.
import { describe, expect, it } from 'vitest';
import type { FlowProducer, Job, Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { redisClient } from '../support/redis.js';
import { useOwnServer } from '../support/use-own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const WAIT_MS = 100_000;

const texts = [
  "'] redis.call('FLUSHALL') --[[",
  '"..redis.call("SET","pwned","1").."',
  '{other}',
  '}{',
  '*',
  '[a-z]?',
  '../../etc',
  'a\r\nSET pwned 1\r\n',
  '\0',
  '$1\r\nx',
  '__proto__',
  '-1 0',
  '%s%n',
  ' ',
];

const prefixes = ['bull', 'a:b', '{tag}', "x'] .. redis", '*\r\n'];

/** What the keys of a queue start with. */
function baseOf(prefix: string, name: string): string {
  const isTagged = prefix === '{tag}' || name === '{other}';
  return isTagged ? `${prefix}:${name}:chasqui:` : `{${prefix}:${name}}:`;
}

describe('hostile names', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  it('an option that is called as a prototype is one option more', async () => {
    const queue = stage.queue();
    const opts = JSON.parse('{"__proto__":{"attempts":5,"priority":3},"constructor":{"delay":100000}}') as object;
    const template = { name: 'job', opts: JSON.parse('{"__proto__":{"attempts":5}}') as object };
    await queue.upsertJobScheduler('every', { every: 1_000_000 }, template);
    const [scheduler] = await queue.getJobSchedulers();
    expect(Object.getPrototypeOf(scheduler)).toBe(Object.prototype);
    expect(scheduler.template?.opts?.attempts).toBeUndefined();
    await queue.add('plain', 1, opts);
    await queue.add('record', 2, { ...opts, lifo: true });
    const worker = stage.worker(async (job) => {
      expect(Object.getPrototypeOf(job.opts)).toBe(Object.prototype);
      await Promise.reject(
        new Error(`${job.opts.attempts} ${job.opts.priority ?? 0} ${Object.keys(job.opts).sort().join()}`),
      );
    });
    const log = new EventLog(worker, ['failed']);
    const failed = await log.get<[Job, Error]>('failed', 3, WAIT_MS).then(() => log.all<[Job, Error]>('failed'));
    const reasons = failed.filter(([job]) => job.name !== 'job').map(([job, error]) => [job.name, error.message]);
    expect(reasons.sort()).toEqual([
      ['plain', '0 0 __proto__,attempts,backoff,constructor'],
      ['record', '0 0 __proto__,attempts,backoff,constructor,lifo'],
    ]);
    // of any field that stands with the queue
    const redis = redisClient();
    await redis.hset(`{bull:${stage.queueName}}:meta`, '__proto__', 'x');
    await redis.quit();
    const meta = await queue.getMeta();
    expect([Object.getPrototypeOf(meta), Object.keys(meta).includes('__proto__')]).toEqual([Object.prototype, true]);
  });

  /** Uses a text wherever a caller may. */
  async function use(queue: Queue, flows: FlowProducer, prefix: string, text: string): Promise<number> {
    const attempts = 2;
    await queue.add(text, { [text]: text }, { jobId: text, attempts });
    await queue.add(text, text, { deduplication: { id: text }, attempts });
    await queue.add(text, text, { priority: 3, attempts, backoff: { type: 'fixed', delay: 1 } });
    await queue.upsertJobScheduler(text, { every: 1_000_000 }, { name: text, data: { text } });
    const { name: queueName } = queue;
    const opts = { jobId: `parent ${text}` };
    const child = {
      name: text,
      queueName,
      prefix,
      data: text,
      opts: { jobId: `child ${text}`, failParentOnFailure: true },
    };
    await flows.add({ name: text, queueName, prefix, opts, children: [child] });
    const job = await queue.getJob(text);
    await job?.log(text);
    await job?.updateProgress({ text });
    await queue.getDeduplicationJobId(text);
    await queue.getJobScheduler(text);
    await queue.getJobLogs(text);
    await queue.getDependencies(`parent ${text}`, 'pending', 0, -1);
    // a scheduler's first job, too
    return 6;
  }

  it.each(prefixes)('under the prefix %j', { timeout: 2 * WAIT_MS }, async (prefix) => {
    await own.redis.flushall();
    await own.redis.set('sentinel', 'stands');
    const bases: string[] = ['sentinel'];
    const flows = stage.keep(new chasquimq.FlowProducer({ connection: own.connection, prefix }));
    const opts = { connection: own.connection, prefix };
    for (const name of texts) {
      if (name.includes(':')) continue;
      bases.push(baseOf(prefix, name));
      const queue = stage.watch(new chasquimq.Queue(name, opts));
      let jobs = 0;
      for (const text of texts) jobs += await use(queue, flows, prefix, text);
      const worker = new chasquimq.Worker(
        name,
        async (job) => {
          if (job.attemptsMade === 0 && job.opts.attempts === 2) throw new Error(job.name);
          return { [job.name]: job.name };
        },
        { ...opts, name: 'w', concurrency: 10 },
      );
      stage.watch(worker);
      const log = new EventLog(worker, ['completed']);
      await log.get('completed', jobs, WAIT_MS);
      for (const text of texts) {
        await queue.removeJobScheduler(text);
        await queue.remove(text);
      }
      await worker.close();
    }
    const keys: string[] = await own.redis.keys('*');
    expect(keys.filter((key) => !bases.some((base) => key.startsWith(base)))).toEqual([]);
    expect(await own.redis.get('sentinel')).toBe('stands');
    for (const name of texts) {
      const queue = stage.watch(new chasquimq.Queue(name, opts));
      await queue.obliterate({ force: true });
    }
    // leases and what answers calls that are sent again expire by themselves
    const left = (await own.redis.keys('*')).filter((key) => !/:(memo|lease):/.test(key));
    expect(left).toEqual(['sentinel']);
  });
});
