// A queue is moved, and moved back, while workers of both libraries run jobs that do what real ones do, and what moves it is killed
// again and again: no job is lost, none is doubled, none is stuck.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import * as source from '../../src/index.js';
import { Returner } from '../../src/tools/migrate/returner.js';
import type { Library } from '../support/libraries.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { keysContaining } from '../support/redis.js';
import { sleep, until } from '../support/waiting.js';
import { MAJORS, useBench } from './bench.js';
import { Jobs } from './jobs.js';

const ours = source as unknown as Library;
const LIMIT_MS = 300_000;
/** Rounds in each direction; in each the process that moves jobs is killed once. */
const ROUNDS = 8;
const A_ROUND = 24;
const BOTH = ['', '-b'] as const;
const EVERY_MS = 120;

/** Moves the queues QUEUES in DIRECTION, as it was built, over and over. */
const MOVER = `
const { createRequire } = await import('node:module');
const require = createRequire(process.cwd() + '/package.json');
const { Queue } = require('./dist/cjs/index.js');
const { Mover } = require('./dist/cjs/tools/migrate/mover.js');
const { Returner } = require('./dist/cjs/tools/migrate/returner.js');
const connection = JSON.parse(process.env.CONNECTION);
const queues = JSON.parse(process.env.QUEUES).map((name) => new Queue(name, { connection, skipMetasUpdate: true }));
const Way = process.env.DIRECTION === 'back' ? Returner : Mover;
const mover = new Way(queues, { gap: 1_000_000 });
await Promise.all(queues.map((queue) => queue.waitUntilReady()));
console.log('begins');
for (;;) await mover.move();
`;

describe.each(MAJORS)('moving queues of $name while they work', (major) => {
  const bench = useBench(major);
  const errors: Error[] = [];

  function startWorkers(jobs: Jobs): void {
    const queues = (side: 'queue' | 'target'): Queue[] => BOTH.map((suffix) => bench[side](suffix));
    const [theirs, own] = [queues('queue'), queues('target')];
    for (const [i, suffix] of BOTH.entries()) {
      const handler = (who: string, lib: Library, of: Queue[]) => jobs.handler(who, lib, of[i], of[1 - i]);
      for (const worker of [
        bench.worker(handler('theirs', major.lib, theirs), { concurrency: 4 }, suffix),
        bench.ownWorker(handler('ours', ours, own), { concurrency: 4 }, suffix),
      ]) {
        worker.on('error', (error) => errors.push(error));
      }
    }
  }

  /** Lets a process move the queues until it is killed, while `add` adds jobs. */
  async function moveAndKill(direction: 'there' | 'back', random: Random, add: () => Promise<unknown>): Promise<void> {
    const names = BOTH.map((suffix) => bench.name + suffix);
    const mover = Program.startText(MOVER, { env: { QUEUES: JSON.stringify(names), DIRECTION: direction } });
    await mover.said('begins');
    const adding = add();
    // at any moment of a step
    await sleep(random.next(150));
    expect((await mover.kill()).signal, mover.errors).toBe('SIGKILL');
    await adding;
  }

  async function idsOfTicks(queue: Queue): Promise<string[]> {
    return (await queue.getJobs(['completed'])).filter(({ name }) => name === 'tick').map(({ id }) => id ?? '');
  }

  /** What neither library keeps for jobs that have ended, and what ours keeps for any. */
  async function keysLeft(): Promise<string[]> {
    const theirs = /:(de:.*|dn:.*|moved-parents|[^:]*:(lock|dependencies|unsuccessful))$/;
    const own = /(\}|:chasqui):(jobs|vitals|(children|spans):.*)$/;
    const keys = await keysContaining(bench.redis, bench.name);
    return keys.filter((key) => theirs.test(key) || own.test(key));
  }

  it('loses no job, doubles none, and leaves none behind', { timeout: LIMIT_MS }, async () => {
    const random = new Random(43);
    const jobs = new Jobs(random);
    const [queue, target] = [bench.queue(), bench.target()];
    const flows = { theirs: bench.flows(), ours: bench.ownFlows() };
    const add = async (side: 'theirs' | 'ours'): Promise<void> => {
      await (side === 'theirs' ? queue : target).addBulk(jobs.make(A_ROUND));
      await flows[side].add(jobs.tree(bench.name, `${bench.name}-b`));
    };
    await queue.upsertJobScheduler('often', { every: EVERY_MS }, { name: 'tick', data: { way: 'ticks', step: 0 } });
    await add('theirs');
    startWorkers(jobs);
    for (const [direction, first] of [
      ['there', 'theirs'],
      ['back', 'ours'],
    ] as const) {
      for (let round = 0; round < ROUNDS; round++) {
        // producers are switched one after the other
        const side = round < ROUNDS / 2 ? first : first === 'theirs' ? 'ours' : 'theirs';
        await moveAndKill(direction, random, () => add(side));
      }
    }
    const returner = new Returner(BOTH.map((suffix) => bench.movable(suffix)));
    const goBack = async (): Promise<boolean> => {
      await returner.move();
      return jobs.areDone && (await target.getJobSchedulersCount()) === 0;
    };
    await until('all jobs to end', goBack, LIMIT_MS / 2);
    expect((await queue.getJobSchedulers()).map(({ key }) => key)).toEqual(['often']);
    expect(await queue.removeJobScheduler('often')).toBe(true);
    const others = [bench.queue('-b'), bench.target('-b')];
    const open = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children'] as const;
    await until('nothing to be left', async () => {
      const left = await Promise.all([queue, target, ...others].map((each) => each.getJobCountByTypes(...open)));
      return left.every((count) => count === 0);
    });
    await returner.move();
    expect(returner.accounts.map(({ stays }) => [...stays])).toEqual([[], []]);

    jobs.expectRuns();
    const ended = (await Promise.all([queue, others[0]].map((each) => each.getJobs(['completed', 'failed'])))).flat();
    jobs.expectEnds(ended.filter(({ name }) => name !== 'tick') as Job[]);
    const ticks = await idsOfTicks(queue);
    expect(ticks.length).toBeGreaterThan(ROUNDS);
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.filter((id) => jobs.runs.get(id)?.length !== 1)).toEqual([]);
    for (const each of [target, others[1]]) expect(await each.getJobCountByTypes('completed', 'failed')).toBe(0);
    expect(await keysLeft()).toEqual([]);
    expect(errors).toEqual([]);
    expect(new Set([...jobs.runs.values()].flat())).toEqual(new Set(['theirs', 'ours']));
  });
});
