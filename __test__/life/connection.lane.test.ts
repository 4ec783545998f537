// The connection that all queues and workers of a thread share breaks in the middle of a request, or of an answer, wherever that is: each add is carried
// out once and in its order, each job runs as often as it has to, and no call is left without an answer.
import type { ConnectionOptions, Job, Queue, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { expectAllCompleted } from '../support/once-each.js';
import { Proxy } from '../support/proxy.js';
import { server } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { Authority, TlsFront } from '../support/tls.js';
import type { Certificate } from '../support/tls.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 300_000;
const QUEUES = ['one', 'two', 'three'];
/** So many bytes still go through: within a command's first line, its arguments, its data, and what is longer than a segment. */
const PLACES = [0, 1, 2, 3, 4, 5, 7, 9, 11, 14, 18, 23, 29, 37, 48, 61, 80, 105, 137, 180, 240, 400, 900, 2_000, 8_000];
const LARGE = 'r'.repeat(100 * 1024);
/** Jobs that are added to a queue in a round: some one by one, then many, then some. */
const ROUND = 14;

/** What a handler does, by its job's number. */
function kindOf(number: number): 'throws once' | 'large' | 'plain' {
  if (number % 5 === 3) return 'throws once';
  return number % 50 === 7 ? 'large' : 'plain';
}

/** A queue with its worker, and what has become of its jobs. Their data are the numbers of their adds, from 0 on. */
class Line {
  readonly adds: Promise<string[]>[] = [];
  readonly runs: number[] = [];
  added = 0;
  completed = 0;
  /** How often the connection of its calls, and of its worker's steps, has broken. */
  breaks = { calls: 0, steps: 0 };

  readonly run = async (job: Job): Promise<string> => {
    const { number } = job.data as { number: number };
    this.runs[number] = (this.runs[number] ?? 0) + 1;
    await Promise.resolve();
    const kind = kindOf(number);
    if (kind === 'throws once' && this.runs[number] === 1) throw new Error('on purpose');
    return kind === 'large' ? LARGE : String(number);
  };

  constructor(
    readonly queue: Queue,
    work: (run: Line['run']) => Worker,
  ) {
    queue.on('ioredis:close', () => this.breaks.calls++);
    work(this.run)
      .on('completed', () => this.completed++)
      .on('ioredis:close', () => this.breaks.steps++);
  }

  /** Adds jobs at once, in the order of their numbers, and asks for some of them. */
  async round(): Promise<void> {
    const next = (): object => {
      const number = this.added++;
      return number % (2 * ROUND) === 0 ? { number, pad: LARGE } : { number };
    };
    const one = (): void => void this.adds.push(this.queue.add('job', next()).then(({ id }) => [String(id)]));
    const from = this.adds.length;
    for (let i = 0; i < 4; i++) one();
    const jobs = Array.from({ length: ROUND - 6 }, () => ({ name: 'job', data: next() }));
    this.adds.push(this.queue.addBulk(jobs).then((all) => all.map(({ id }) => String(id))));
    await Promise.resolve();
    for (let i = 0; i < 2; i++) one();
    const asked = [this.queue.getJobCounts('completed'), this.queue.count()];
    const [ids] = await Promise.all([Promise.all(this.adds.slice(from)), ...asked]);
    // each gets the answer to its own question
    const first = this.added - ROUND;
    const job = await fetchJob(this.queue, ids[0][0]);
    expect([job.id, job.data.number]).toEqual([ids[0][0], first]);
  }

  async expectAllIsWell(): Promise<void> {
    await until('all jobs to complete', () => this.completed >= this.added, LIMIT_MS);
    const ids = (await Promise.all(this.adds)).flat();
    expect(ids).toEqual(Array.from({ length: this.added }, (_, number) => String(number + 1)));
    expect(this.runs).toEqual(ids.map((_, number) => (kindOf(number) === 'throws once' ? 2 : 1)));
    await until('their ends to be stored', async () => (await this.queue.getCompletedCount()) >= this.added, LIMIT_MS);
    await expectAllCompleted(this.queue, this.added);
    for (let from = 0; from < this.added; from += 200) {
      for (const { id, data, returnvalue } of await this.queue.getCompleted(from, from + 199)) {
        expect(id).toBe(String(data.number + 1));
        expect(returnvalue === (kindOf(data.number) === 'large' ? LARGE : String(data.number))).toBe(true);
      }
    }
    expect(this.completed).toBe(this.added);
  }
}

describe('a connection that all share', () => {
  const stage = useStage(chasquimq);
  let authority: Authority;
  let certificate: Certificate;
  beforeAll(() => {
    authority = new Authority();
    certificate = authority.sign('DNS:localhost,IP:127.0.0.1');
  });
  afterAll(() => authority.close());

  /** A way to the server on which a connection can be cut; what is counted with TLS are its bytes. */
  async function way(proxy: Proxy, isTls: boolean): Promise<ConnectionOptions> {
    stage.keep(proxy);
    if (isTls) {
      const front = stage.keep(await new TlsFront(certificate).open());
      proxy.upstream = { host: '127.0.0.1', port: front.port };
    }
    await proxy.open();
    return { ...server, host: '127.0.0.1', port: proxy.port, ...(isTls && { tls: { ca: authority.ca } }) };
  }

  /** Lets so many bytes of a longer piece through, and then no more of its connection; again as soon as it is told to. */
  function cutterOf(proxy: Proxy, side: 'holdRequest' | 'holdAnswer'): (place: number) => void {
    let wanted: number | undefined;
    proxy[side] = (piece) => {
      if (wanted === undefined || piece.length <= wanted) return undefined;
      const place = wanted;
      wanted = undefined;
      return place;
    };
    return (place) => (wanted = place);
  }

  describe.each([
    ['plain', false],
    ['with TLS', true],
  ])('%s', (_, isTls) => {
    it.each([
      ['a request', 'holdRequest'],
      ['an answer', 'holdAnswer'],
    ] as const)('is cut in the middle of %s', { timeout: LIMIT_MS }, async (__, side) => {
      const proxy = new Proxy();
      const cutAt = cutterOf(proxy, side);
      const connection = await way(proxy, isTls);
      const lines = QUEUES.map((part) => {
        const queue = stage.queue({ connection, defaultJobOptions: { attempts: 2 } }, part);
        return new Line(queue, (run) => stage.worker(run, { connection, concurrency: 5, drainDelay: 0.1 }, part));
      });
      const round = () => Promise.all(lines.map((line) => line.round()));
      await round();
      for (const place of PLACES) {
        const before = lines[0].breaks.calls;
        // other connections are cut meanwhile, those of steps and of waits
        while (lines[0].breaks.calls === before) {
          cutAt(place);
          await round();
        }
        // they share it again
        await round();
      }
      while (lines[0].breaks.steps < PLACES.length / 5) {
        cutAt(PLACES[lines[0].breaks.steps]);
        await round();
      }
      for (const line of lines) await line.expectAllIsWell();
      stage.takeErrors();
    });
  });
});
