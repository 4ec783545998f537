// The connection that all queues and workers of a thread share breaks in the middle of a request, or of an answer; its process forks; its thread ends, or
// stands still. Each add is carried out once and in its order, each job runs as often as it has to, and no call is left without an answer.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Worker as Thread } from 'node:worker_threads';
import type { ConnectionOptions, Job, Queue, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { expectAllCompleted } from '../support/once-each.js';
import { Proxy } from '../support/proxy.js';
import { Random } from '../support/random.js';
import { server } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { Authority, TlsFront } from '../support/tls.js';
import type { Certificate } from '../support/tls.js';
import { useOwnServer } from '../support/use-own-server.js';
import { doWork, workOf } from '../support/users-work.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 300_000;
const QUEUES = ['one', 'two', 'three'];
/** So many bytes still go through: within a command's first line, its arguments, its data, and what is longer than a segment. */
const PLACES = [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 400, 900, 2_000, 8_000];
const LARGE = 'r'.repeat(100 * 1024);
/** Jobs that are added to a queue in a round: some one by one, then many, then some. */
const ROUND = 14;

const FORKED = new URL('programs/forked.mjs', import.meta.url);
const THREAD = new URL('programs/shares-lane.mjs', import.meta.url);
/** Numbers of another process begin here. */
const FAR = 1_000_000;
/** Numbers that threads have among them. */
const NUMBERS = 40_000;
/** They run out soon where nobody renews them, and a starved thread has time to renew them. */
const SHORT_LOCKS = { lockDuration: 1_500, lockRenewTime: 100 };

interface Beside {
  readonly thread: Thread;
  /** By number: how often a job began there, was told to be completed, and its add was answered. */
  readonly runs: Int32Array;
  readonly ended: Int32Array;
  readonly added: Int32Array;
  /** Set, it goes on. */
  readonly go: Int32Array;
}

/** A queue with its worker, and what has become of its jobs. Their data are the numbers of their adds, from 0 on. */
class Line {
  readonly adds: Promise<string[]>[] = [];
  readonly runs: number[] = [];
  added = 0;
  completed = 0;
  /** How often the connection of its calls, and of its worker's steps, has broken. */
  breaks = { calls: 0, steps: 0 };
  readonly #random = new Random(5);

  readonly run = async (job: Job, token?: string): Promise<string> => {
    const { number } = job.data as { number: number };
    const nth = (this.runs[number] ?? 0) + 1;
    this.runs[number] = nth;
    return doWork(job, token, { number, nth, random: this.#random });
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
    const [first, from] = [this.added, this.adds.length];
    for (let i = 0; i < 4; i++) one();
    const jobs = Array.from({ length: ROUND - 6 }, () => ({ name: 'job', data: next() }));
    this.adds.push(this.queue.addBulk(jobs).then((all) => all.map(({ id }) => String(id))));
    await Promise.resolve();
    for (let i = 0; i < 2; i++) one();
    // the first job's answer is a long one
    const asked = [this.queue.getJobCounts('completed'), this.queue.getJob('1'), this.queue.count()];
    const [ids] = await Promise.all([Promise.all(this.adds.slice(from)), ...asked]);
    // each gets the answer to its own question
    const job = await fetchJob(this.queue, ids[0][0]);
    expect([job.id, job.data.number]).toEqual([ids[0][0], first]);
  }

  async expectAllIsWell(): Promise<void> {
    await until('all jobs to complete', () => this.completed >= this.added, LIMIT_MS);
    const ids = (await Promise.all(this.adds)).flat();
    expect(ids).toEqual(Array.from({ length: this.added }, (_, number) => String(number + 1)));
    expect(this.runs).toEqual(ids.map((_, number) => workOf(number).runs));
    await until('their ends to be stored', async () => (await this.queue.getCompletedCount()) >= this.added, LIMIT_MS);
    await expectAllCompleted(this.queue, this.added);
    for (let from = 0; from < this.added; from += 200) {
      for (const { id, data, returnvalue } of await this.queue.getCompleted(from, from + 199)) {
        expect(id).toBe(String(data.number + 1));
        expect(returnvalue === workOf(data.number).result).toBe(true);
      }
    }
    expect(this.completed).toBe(this.added);
  }
}

describe('a connection that all share', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();
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

  /** Those of the server's clients, but for the one that asks. */
  async function clientIds(): Promise<string[]> {
    const list = ((await own.redis.client('LIST')) as string).trim().split('\n');
    return list.filter((line) => !line.includes(' cmd=client|list ')).map((line) => line.split(' ', 1)[0]);
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

  it('is nothing to a process that is forked amid calls, whose queues and workers have their own', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const ran: number[] = [];
    const worker = stage.worker(async ({ data }) => ran.push(data as number), { connection, concurrency: 5 });
    const adds: [number, string][] = [];
    const round = async () => {
      const sent = Array.from({ length: 10 }, (_, i) => queue.add('job', adds.length + i));
      const added = await Promise.all(sent);
      adds.push(...added.map(({ id, data }): [number, string] => [data, String(id)]));
      const { id, data } = await fetchJob(queue, added[0].id);
      expect([id, data]).toEqual([added[0].id, added[0].data]);
    };
    for (let i = 0; i < 10; i++) await round();
    const before = await clientIds();
    expect(before.length).toBeGreaterThan(2);
    const first = round();
    const env = { ...process.env, QUEUE: queue.name, CONNECTION: JSON.stringify(connection), FIRST: String(FAR) };
    const child = fork(FORKED, { env, execArgv: [] });
    stage.keep({ close: async () => void child.kill('SIGKILL') });
    const said = messagesOf(child);
    await first;
    while (!said.includes('busy')) await round();
    child.send('stop');
    const theirs = await told<[number, string][]>(said, 'adds');

    const all = [...adds, ...theirs];
    await until('all to complete', async () => (await queue.getCompletedCount()) === all.length);
    await expectAllCompleted(queue, all.length);
    for (const each of [adds, theirs]) expect([...each].sort(([, a], [, b]) => Number(a) - Number(b))).toEqual(each);
    const data = new Map((await queue.getCompleted(0, -1)).map((job) => [String(job.id), job.data as number]));
    expect(new Map(all.map(([number, id]) => [id, number]))).toEqual(data);
    child.send('report');
    const others = await told<number[]>(said, 'ran');
    expect(others.length).toBeGreaterThan(0);
    expect([...ran, ...others].sort(byValue)).toEqual(all.map(([number]) => number).sort(byValue));
    // it holds none of ours open
    await worker.close();
    await queue.close();
    await until('ours to end', async () => !(await clientIds()).some((id) => before.includes(id)));
    const ended = once(child, 'exit');
    child.send('close');
    expect(await ended).toEqual([0, null]);
  });

  /** Starts a thread on the test's queue, and gives what it does in memory that outlives it. */
  function startThread(does: string, first: number, concurrency: number): Beside {
    const [runs, ended, added, go] = [NUMBERS, NUMBERS, NUMBERS, 1].map(
      (size) => new Int32Array(new SharedArrayBuffer(4 * size)),
    );
    const cells = { runs, ended, added, go };
    const given = { name: stage.queueName, connection: own.connection, does, first, concurrency, locks: SHORT_LOCKS };
    const thread = new Thread(THREAD, { workerData: { ...given, cells } });
    stage.keep({ close: async () => void (await thread.terminate()) });
    return { thread, ...cells };
  }

  it('threads end amid calls: the others lose nothing, and run what those held', { timeout: LIMIT_MS }, async () => {
    const { connection } = own;
    const line = new Line(stage.queue({ connection, defaultJobOptions: { attempts: 2 } }, 'own'), (run) =>
      stage.worker(run, { connection, concurrency: 5 }, 'own'),
    );
    const queue = stage.queue({ connection });
    const runs = new Int32Array(NUMBERS);
    let stalled = 0;
    const opts = { connection, concurrency: 5, stalledInterval: 50, maxStalledCount: 100 };
    stage.worker(async ({ data }) => runs[data as number]++, opts).on('stalled', () => stalled++);
    await line.round();
    const threads: Beside[] = [];
    for (let nth = 0; nth < 4; nth++) {
      const beside = startThread('add', (nth * NUMBERS) / 4, 5);
      threads.push(beside);
      const holding = once(beside.thread, 'message');
      await Promise.all([holding, line.round()]);
      const rounds = Promise.all([line.round(), line.round()]);
      expect(await beside.thread.terminate()).toBe(1);
      await rounds;
      await line.round();
    }
    await line.expectAllIsWell();

    const jobsThere = async () => queue.getJobs(['waiting', 'active', 'completed', 'failed', 'delayed'], 0, -1);
    const all = new Map((await jobsThere()).map(({ id, data }) => [data as number, String(id)]));
    await until('all to complete', async () => (await queue.getCompletedCount()) >= all.size, LIMIT_MS);
    await expectAllCompleted(queue, all.size);
    expect((await jobsThere()).length).toBe(all.size);
    for (let number = 0; number < NUMBERS; number++) {
      const of = (cells: 'runs' | 'ended' | 'added') => threads.map((beside) => beside[cells][number]);
      const [inThreads, ended] = [sum(of('runs')), sum(of('ended'))];
      const what = `job ${number}: ${of('runs').join()} runs`;
      // none that was added is missing
      expect(sum(of('added')), what).toBeLessThanOrEqual(all.has(number) ? 1 : 0);
      if (!all.has(number)) continue;
      // one runs again that its thread has not told to be completed, and no other
      expect(runs[number], what).toBeLessThanOrEqual(1);
      expect(Math.max(...of('runs')), what).toBeLessThanOrEqual(1);
      expect(runs[number] + inThreads, what).toBeGreaterThanOrEqual(1);
      if (ended > 0) expect([ended, runs[number]], what).toEqual([1, 0]);
    }
    // each has held one at least
    expect(stalled).toBeGreaterThanOrEqual(threads.length);
  });

  it.each([
    ['the worker has taken in advance', 'block first', 1],
    ['come with the answers to its adds', 'block', 2],
  ])(
    'an event loop is blocked for three leases: jobs that %s are run by another worker meanwhile',
    async (_, does, concurrency) => {
      const { connection } = own;
      const queue = stage.queue({ connection });
      const runs = new Int32Array(NUMBERS);
      const global = stage.globalLog({ connection });
      const stalled: string[] = [];
      const beside = startThread(does, 0, concurrency);
      const said = messagesOf(beside.thread);
      if (does === 'block') {
        await until('it to be idle', async () => (await queue.getCompletedCount()) === 1_000);
        beside.thread.postMessage('add it');
        await until('it to run', () => said.includes('runs'));
        await untilWaiting(own.redis, queue.name, 1);
        beside.thread.postMessage('go on');
      }
      const jobs = await told<number>(said, 'blocking');
      const since = performance.now();
      const opts = { connection, stalledInterval: 50 };
      stage.worker(async ({ data }) => runs[data as number]++, opts).on('stalled', (id) => stalled.push(id));
      const ran = () => sum([...runs, ...beside.runs]);
      await until('all others to run', () => ran() === jobs);
      // the leases that nobody renews are over by then
      await until('three leases', () => performance.now() - since > 3 * SHORT_LOCKS.lockDuration);
      // those that ended just before it are with the one that runs
      for (const { data } of await queue.getActive(0, -1)) expect(beside.runs[data as number]).toBe(1);
      Atomics.store(beside.go, 0, 1);
      Atomics.notify(beside.go, 0);
      expect(new Set(await told<string[]>(said, 'ids')).size).toBe(70);
      await until('the last to complete', async () => (await queue.getCompletedCount()) === jobs);
      await expectAllCompleted(queue, jobs);
      expect(stalled).toEqual([]);
      // the blocked one has had some
      await until('all events', () => global.all('completed').length === jobs);
      expect(global.all('active').length).toBeGreaterThan(jobs);
      for (let number = 0; number < jobs; number++) expect(runs[number] + beside.runs[number], String(number)).toBe(1);
      expect((await queue.getCompleted(0, -1)).every((job) => job.attemptsStarted === 1)).toBe(true);
    },
  );
});

function messagesOf(child: ChildProcess | Thread): unknown[] {
  const said: unknown[] = [];
  child.on('message', (message: unknown) => said.push(message));
  return said;
}

/** What is told under that name. */
function told<T>(said: unknown[], name: string): Promise<T> {
  const find = () => said.find((each) => typeof each === 'object' && each !== null && name in each);
  return until(name, () => (find() as Record<string, T> | undefined)?.[name] as T);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function byValue(a: number, b: number): number {
  return a - b;
}
