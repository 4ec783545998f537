/**
 * Flows end to end: flows of 1 parent and 10 children, all in one queue, are added by `addBulk` of 1000 flows and drained
 * by one worker (concurrency 100, default retention, a handler that does nothing). Children run before their parents,
 * and a parent is let go by the last of its children. The clock runs from the first `addBulk` until the last parent's
 * `completed` event; the worker is connected before and told to run when all flows are there, so neither side gains from
 * a worker that gets in the way of the adds. What counts is jobs, parents and children alike.
 */
import type { FlowEntry } from '../adapters/library.js';
import { throughputMetrics } from '../measure.js';
import { tinyPayload, type Scenario } from './scenario.js';
import { byData } from './tally.js';

const CHILDREN = 10;
const JOBS_A_FLOW = CHILDREN + 1;
const FLOWS_A_CALL = 1_000;

export const flowScenario: Scenario = {
  name: 'flow',
  title: 'flow: addBulk of 1000 flows of 1 + 10 jobs, process',
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: FLOWS_A_CALL * JOBS_A_FLOW, firstProbe: FLOWS_A_CALL * JOBS_A_FLOW },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    const producer = await stage.openFlowProducer();
    const completions = stage.tally(jobs, byData);
    const worker = await stage.openWorker({
      processor: async () => undefined,
      concurrency: 100,
      onCompleted: completions.add,
    });
    const flows = jobs / JOBS_A_FLOW;

    const watch = stage.stopwatch();
    watch.start();
    for (let from = 0; from < flows; from += FLOWS_A_CALL) {
      await producer.addBulk(flowsOf(stage.queueName, from, Math.min(FLOWS_A_CALL, flows - from)));
    }
    stage.run(worker);
    await completions.done;
    watch.stop();
    await stage.expectCounts(queue, { completed: jobs });
    return watch.sample(jobs);
  },
};

function flowsOf(queueName: string, from: number, count: number): FlowEntry[] {
  return Array.from({ length: count }, (_, i) => ({
    name: 'parent',
    queueName,
    data: tinyPayload((from + i) * JOBS_A_FLOW),
    children: Array.from({ length: CHILDREN }, (_, k) => {
      return { name: 'child', queueName, data: tinyPayload((from + i) * JOBS_A_FLOW + 1 + k) };
    }),
  }));
}
