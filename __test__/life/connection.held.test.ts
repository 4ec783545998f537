// A worker whose requests, or whose answers, are held up on their way: what happens to it meanwhile takes effect all the same, and times are those of when
// the server did something.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ConnectionOptions, Job } from 'bullmq';
import { afterEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Proxy } from '../support/proxy.js';
import { fetchJob, useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { EventLog, Gate, sleep, until } from '../support/waiting.js';

/** Later than this a due job is too late; idle workers look by themselves after a minute. */
const LATE_MS = 20_000;
const DELAY_MS = 1_000;
const DRAIN_DELAY_S = 60;
/** A time that a worker was told longer ago is of no use any more. */
const LONG_MS = 400;

/** A way to the server on which all is held from `close()` until `open()`. */
class Lock {
  /** Pieces that it has held. */
  held = 0;
  #gate: Gate | undefined;

  readonly hold = (): Promise<void> | undefined => {
    if (this.#gate) this.held++;
    return this.#gate?.opened;
  };

  close(): void {
    this.#gate = new Gate();
  }

  open(): void {
    this.#gate?.open();
    this.#gate = undefined;
  }
}

describe('connection.held', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();
  const locks: Lock[] = [];
  // before the stage ends
  afterEach(() => locks.splice(0).forEach((lock) => lock.open()));

  /** Ways to the server: of requests and of answers. */
  async function ways(): Promise<{ connection: ConnectionOptions; requests: Lock; answers: Lock }> {
    const proxy = stage.keep(new Proxy());
    const [requests, answers] = [new Lock(), new Lock()];
    Object.assign(proxy, { upstream: own.connection, holdRequest: requests.hold, holdAnswer: answers.hold });
    await proxy.open();
    locks.push(requests, answers);
    return { connection: { host: '127.0.0.1', port: proxy.port }, requests, answers };
  }

  it('jobs that start behind a pause have no processedOn from before its end', async () => {
    const { connection, requests } = await ways();
    const queue = stage.queue({ connection: own.connection });
    const gates: Record<string, Gate> = { first: stage.gate(), second: stage.gate() };
    const worker = stage.worker(async ({ name }) => gates[name]?.opened, { connection, concurrency: 2 });
    const log = new EventLog(worker, ['active', 'completed']);
    for (const [i, name] of ['first', 'second'].entries()) {
      await queue.add(name, {});
      await log.get('active', i + 1);
    }
    const next = await queue.addBulk(['third', 'fourth'].map((name) => ({ name, data: {} })));
    requests.close();
    gates.first.open();
    await until('its end to be held', () => requests.held > 0);
    gates.second.open();
    // by then it is no time to go by
    await sleep(LONG_MS);
    const resumed = Date.now();
    requests.open();
    await log.get('completed', 4);
    for (const { id } of next) expect((await fetchJob(queue, id)).processedOn).toBeGreaterThanOrEqual(resumed);
  });

  it.each(['a step', 'the answer to a wait'] as const)(
    'a worker that is paused while %s is under way hands on what is due',
    async (what) => {
      const { connection, requests, answers } = await ways();
      const queue = stage.queue({ connection: own.connection });
      const gate = stage.gate();
      const run = async ({ name }: Job): Promise<void> => (name === 'held' ? gate.opened : undefined);
      const opts = { concurrency: 2, drainDelay: DRAIN_DELAY_S };
      const paused = stage.worker(run, { connection, ...opts });
      const log = new EventLog(paused, ['active', 'drained']);
      await log.get('drained');
      await untilWaiting(own.redis, queue.name, 1);
      if (what === 'a step') {
        await queue.add('held', {});
        await log.get('active');
        await untilWaiting(own.redis, queue.name, 1);
      }
      const key = `{bull:${queue.name}}:waiting-workers`;
      const [first] = await own.redis.smembers(key);
      const other = new EventLog(stage.worker(run, { connection: own.connection, ...opts }), ['completed']);
      await untilWaiting(own.redis, queue.name, 2);
      // the server tells any of them: the other one does not wait until the first was told
      const others = (await own.redis.smembers(key)).filter((owner) => owner !== first);
      await own.redis.srem(key, ...others);
      const way = what === 'a step' ? requests : answers;
      way.close();
      const job = await queue.add('later', {}, { delay: DELAY_MS });
      await until(`${what} to be held`, () => way.held > 0);
      await own.redis.sadd(key, ...others);
      const pausing = paused.pause(true);
      await nextTurn();
      if (what === 'a step') requests.open();
      const [{ name }] = await other.get<[Job]>('completed');
      expect([name, Date.now() < job.timestamp + DELAY_MS + LATE_MS]).toEqual(['later', true]);
      answers.open();
      await pausing;
    },
  );
});
