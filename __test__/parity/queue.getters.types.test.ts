// Pins how states may be given to the getters of a queue: as texts, and as what JavaScript callers make of them.
import { beforeEach, describe, expect, it } from 'vitest';
import type { JobType, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { rejection } from '../support/waiting.js';

/** Lists among the arguments, which the types do not allow. */
const lists = (...types: unknown[]): JobType[] => types as JobType[];

describe.each(libraries)('$name: states given to getters', ({ lib }) => {
  const stage = useStage(lib);
  let queue: Queue;

  beforeEach(async () => {
    queue = stage.queue();
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {} },
      { name: 'later', data: {}, opts: { delay: 3_600_000 } },
      { name: 'urgent', data: {}, opts: { priority: 3 } },
    ]);
  });

  const names = async (types?: JobType[] | JobType) => (await queue.getJobs(types)).map(({ name }) => name);

  it.each([
    ['a list', lists(['wait']), { wait: 2 }, ['b', 'a']],
    ['a list in a list', lists([['wait']]), { wait: 2 }, ['b', 'a']],
    ['a text and a list', lists('wait', ['delayed']), { wait: 2, delayed: 1 }, ['b', 'a', 'later']],
    ['a list and a text', lists(['wait'], 'delayed'), { wait: 2, delayed: 1 }, ['b', 'a', 'later']],
    ['a text and a list of the same', lists('wait', ['wait']), { wait: 2 }, ['b', 'a']],
    [
      'lists',
      lists(['active'], ['delayed'], ['prioritized']),
      { active: 0, delayed: 1, prioritized: 1 },
      ['later', 'urgent'],
    ],
    ['a list of several', lists(['wait', 'delayed']), { 'wait,delayed': 0 }, []],
    ['a list of another name', lists(['waiting']), { waiting: 0 }, []],
    ['both names of one state', lists('wait', 'waiting'), { wait: 2, waiting: 2 }, ['b', 'a']],
    ['what is no state', lists('nothing', ['nothing']), { nothing: 0 }, []],
  ])('%s', async (_, types, counts, jobs) => {
    const count = Object.values<number>(counts).reduce((sum, of) => sum + of, 0);
    expect(await queue.getJobCounts(...types)).toEqual(counts);
    expect(await queue.recordJobCountsMetric(...types)).toEqual(counts);
    expect(await queue.getJobCountByTypes(...types)).toBe(count);
    expect(await names(types)).toEqual(jobs);
    expect(await queue.getRanges(types, 0, -1)).toHaveLength(jobs.length);
  });

  it('an empty list is all states', async () => {
    expect(await queue.getJobCountByTypes(...lists([]))).toBe(0);
    expect(await queue.getJobCountByTypes(...lists())).toBe(4);
    expect(await names(lists())).toHaveLength(4);
    expect(await names()).toHaveLength(4);
  });

  it('getRanges takes an array only, which may be empty', async () => {
    expect(await queue.getRanges([], 0, -1)).toEqual([]);
    for (const types of ['wait', undefined]) {
      const refusal = await rejection(queue.getRanges(types as unknown as JobType[], 0, -1));
      expect(refusal).toBeInstanceOf(TypeError);
    }
  });

  it('calls of one state take a list of one', async () => {
    const [wait, failed, completed] = [['wait'], ['failed'], ['completed']] as unknown as [
      'wait',
      'failed',
      'completed',
    ];
    expect((await queue.getMetrics(completed)).count).toBe(0);
    await queue.retryJobs({ state: failed });
    expect((await queue.clean(0, 100, wait)).sort()).toEqual(['1', '2']);
    expect(await names('wait')).toEqual([]);
  });
});
