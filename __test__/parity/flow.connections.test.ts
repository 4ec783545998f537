// Pins that the jobs of a flow are asked by the connection of their producer, however many queues they are in.
import { expect, it, describe } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

const QUEUES = 20;

describe.each(libraries)('$name: flow.connections', ({ lib }) => {
  const own = useOwnServer();
  const stage = useStage(lib);

  /** All but the one that asks. */
  async function count(): Promise<number> {
    return ((await own.redis.client('LIST')) as string).trim().split('\n').length - 1;
  }

  async function addFlows() {
    const producer = stage.flowProducer({ connection: own.connection });
    const trees = await producer.addBulk(
      Array.from({ length: QUEUES }, (_, i) => ({
        ...{ name: 'parent', queueName: stage.name(`p${i}`) },
        children: [{ name: 'child', queueName: stage.name(`c${i}`) }],
      })),
    );
    return { producer, jobs: trees.flatMap(({ job, children = [] }) => [job, ...children.map((child) => child.job)]) };
  }

  it('of all queues are one', async () => {
    const { producer, jobs } = await addFlows();
    expect(new Set(await Promise.all(jobs.map((job) => job.getState())))).toEqual(
      new Set(['waiting-children', 'waiting']),
    );
    await jobs[1].log('row');
    expect(await count()).toBe(1);
    await producer.close();
    await until('the end of the connection', async () => (await count()) === 0);
  });

  it('carry out what jobs were asked before the close', async () => {
    const { producer, jobs } = await addFlows();
    await jobs[1].getState();
    const asked = jobs.map((job) => job.updateData({ is: 'new' }));
    await producer.close();
    await Promise.all(asked);
    const queue = stage.queue({ connection: own.connection }, `p${QUEUES - 1}`);
    expect((await queue.getJobs('waiting-children'))[0].data).toEqual({ is: 'new' });
  });

  it('refuse what jobs are asked behind it', async () => {
    const { producer, jobs } = await addFlows();
    await jobs[1].getState();
    await producer.close();
    for (const job of jobs.slice(0, 4)) await expect(job.getState()).rejects.toThrow('Connection is closed.');
  });
});
