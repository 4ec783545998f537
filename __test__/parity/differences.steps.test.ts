// Pins wanted differences in how often the server is asked, on both libraries, by counts of the server. Titles carry ids.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { sideOf } from '../support/sides.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';

const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'job', data }));

describe.each(libraries)('$name: differences, steps', ({ name, lib }) => {
  // others would be counted, too
  const own = useOwnServer();
  const stage = useStage(lib);
  const of = sideOf(name);

  /** How often the server has carried out functions, scripts, and reads of a hash since it started. */
  async function count(): Promise<{ scripts: number; reads: number }> {
    const stats = await own.redis.info('commandstats');
    const calls = (command: string) =>
      Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
    return { scripts: calls('fcall') + calls('evalsha') + calls('eval'), reads: calls('hgetall') };
  }

  /** How often during this call. */
  async function asked(call: () => Promise<unknown>): Promise<{ scripts: number; reads: number }> {
    const before = await count();
    await call();
    const after = await count();
    return { scripts: after.scripts - before.scripts, reads: after.reads - before.reads };
  }

  /** A queue that has called a script before, so that the server knows it. */
  async function queueWith(size: number) {
    const queue = stage.queue({ connection: own.connection });
    await queue.addBulk(jobs(size));
    return queue;
  }

  it('add-travels-in-batches', async () => {
    const queue = await queueWith(1);
    const { scripts } = await asked(() => Promise.all(jobs(100).map(({ data }) => queue.add('job', data))));
    expect(scripts === 100).toBe(of({ bullmq: true, chasquimq: false }));
    expect(scripts).toBeGreaterThan(0);
  });

  it('bulk-calls-in-steps', async () => {
    const queue = await queueWith(5_000);
    // it empties more than one list
    const { scripts } = await asked(() => queue.drain());
    expect(scripts === 1).toBe(of({ bullmq: true, chasquimq: false }));
    expect(await queue.count()).toBe(0);
  });

  it('remove-large-families', async () => {
    const { name: queueName } = await queueWith(1);
    const children = jobs(1_000).map((job) => ({ ...job, queueName }));
    const { job } = await stage
      .flowProducer({ connection: own.connection })
      .add({ name: 'parent', queueName, children });
    const { scripts } = await asked(() => job.remove());
    expect(scripts === 1).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('getters-in-steps', async () => {
    const queue = await queueWith(2_500);
    const { scripts, reads } = await asked(() => queue.getJobs(['waiting']));
    expect([scripts, reads >= 2_500]).toEqual(of({ bullmq: [1, true], chasquimq: [3, false] }));
  });
});
