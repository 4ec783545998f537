// What workers leave behind that are killed while children of flows end: every parent starts once, when all of its
// children have ended, and knows what each of them returned.
import { FlowProducer } from '../../src/flow/flow-producer.js';
import type { JobNode } from '../../src/flow/flow-tree.js';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';
import { useWatchdog } from '../support/watched.js';

/** All queues of a flow lie in one slot of a cluster. */
const PREFIX = '{flows}';
const FLOWS = 400;
const CHILDREN = 10;
const KILLS = 4;
const FINISH_MS = 60_000;

describe('flow.kill', () => {
  const stage = useStage(chasquimq);
  useWatchdog(stage);

  it('starts each parent once, with the value of each child', async () => {
    const random = new Random(7);
    const children = `${stage.queueName}-children`;
    const producer = stage.keep(new FlowProducer({ connection, prefix: PREFIX }));
    const flows = Array.from({ length: FLOWS }, (_, flow) => ({
      name: 'parent',
      queueName: stage.queueName,
      data: flow,
      children: Array.from({ length: CHILDREN }, (_, i) => ({
        name: 'child',
        queueName: children,
        data: flow * 100 + i,
      })),
    }));
    const trees: JobNode[] = [];
    for (let from = 0; from < FLOWS; from += 100)
      trees.push(...(await producer.addBulk(flows.slice(from, from + 100))));

    const started = new Map<string, Record<string, number>[]>();
    stage.worker(
      async (job) => {
        const known = started.get(job.id ?? '') ?? [];
        started.set(job.id ?? '', [...known, await job.getChildrenValues<number>()]);
      },
      { prefix: PREFIX },
    );
    const common = { QUEUE: children, PREFIX };
    for (let owner = 0; owner < KILLS; owner++) {
      const env = { ...common, OWNER: owner, DIE_AT: 100 + random.next(900) };
      const program = stage.keep(Program.start('flow-worker.mjs', { env }));
      expect(await program.ended, program.errors).toEqual({ code: null, signal: 'SIGKILL' });
    }
    const last = stage.keep(Program.start('flow-worker.mjs', { env: { ...common, OWNER: KILLS, DIE_AT: 0 } }));
    const queue = stage.queue({ prefix: PREFIX });
    await until('all parents', async () => (await queue.getCompletedCount()) === FLOWS, FINISH_MS);
    await last.kill();

    expect(started.size).toBe(FLOWS);
    trees.forEach(({ job, children: nodes = [] }) => {
      const values = nodes.map((child) => [`${PREFIX}:${children}:${child.job.id}`, 2 * (child.job.data as number)]);
      expect(started.get(job.id as string)).toEqual([Object.fromEntries(values)]);
    });
  });
});
