/** A chaos run: processes that add and run jobs, faults that hit them, and the account of every job at the end. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue, QueueEventsProducer } from '../../src/index.js';
import type { RedisOptions } from '../../src/index.js';
import { Random } from '../support/random.js';
import { sleep, until } from '../support/waiting.js';
import { watchdog } from '../support/watchdog.js';
import type { Watchdog } from '../support/watchdog.js';
import { faultless, settle } from './account.js';
import type { Account, Evidence } from './account.js';
import { abandoned, calm } from './calm.js';
import type { Cause } from './excuses.js';
import { faultKindsOf, faultOf, inject, LEASE_MS, SCAN_MS } from './faults.js';
import type { FaultKind, Injected, World } from './faults.js';
import { passCalmly } from './idle.js';
import type { Calm } from './idle.js';
import type { Recorded } from './jobs.js';
import { readLedger } from './ledger.js';
import type { Entry } from './ledger.js';
import { Member } from './member.js';
import type { Role, Surroundings } from './member.js';
import { startServers } from './servers.js';
import type { Servers, Topology } from './servers.js';
import { keptJobs, Listener } from './told.js';
import { Way } from './way.js';

const QUEUE = 'chaos';
/** Its slot is that of all keys of the queue. */
const KEY = `{bull:${QUEUE}}:`;
/** Each worker, by its concurrency, where its handlers run, and how many jobs one call of them takes. */
const WORKERS: Record<string, string | number>[] = [
  { CONCURRENCY: 1 },
  { CONCURRENCY: 1 },
  { CONCURRENCY: 1, BATCH: 4 },
  { CONCURRENCY: 5 },
  { CONCURRENCY: 50 },
  { CONCURRENCY: 5, SANDBOX: 'process' },
  { CONCURRENCY: 3, SANDBOX: 'thread' },
];
const PRODUCERS = 3;
/** Mean time between two calls of a producer, of some ten jobs each. */
const PAUSE_MS = 120;
/** Every so many ms a job of each. */
const SCHEDULERS = [250, 400, 1_000];
/** Before the first fault, when workers are new, and after the last one. */
const CALM_MS = 4_000;
const END_MS = 120_000;

export interface ChaosOptions {
  /** Where the queue is; one server by default. */
  readonly topology?: Topology;
  /** Time during which faults are injected. It is not over before each of them was injected, if `each` is set. */
  readonly seconds: number;
  readonly each?: true;
  /** Decides which faults come, in which order and how; not the moments in which they meet the jobs. */
  readonly seed: number;
  /** The faults to choose from. */
  readonly only?: readonly FaultKind[];
  /** Hears what happens. */
  readonly say?: (line: string) => void;
}

export interface ChaosResult {
  readonly account: Account;
  readonly faults: readonly Injected[];
  readonly entries: readonly Entry[];
  /** Epoch ms. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly topology: Topology;
  /** What they are, and of which version. */
  readonly servers: string;
  /** What kept a server, or this process, from everything else for longest. */
  readonly longest: Watchdog['longest'];
  /** The folder with all ledgers and the evidence, which is kept if something is wrong. */
  readonly evidence?: string;
}

/** @throws if the run does not come to its account; the message names the folder where its ledgers are. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const run = new ChaosRun(options);
  try {
    const result = await run.run();
    if (!result.evidence) run.forget();
    return result;
  } catch (error) {
    throw new Error(`${String(error)}; the ledgers are in ${run.folder}`, { cause: error });
  } finally {
    await run.close();
  }
}

class ChaosRun {
  readonly folder = mkdtempSync(join(tmpdir(), 'chasquimq-chaos-'));
  readonly #options: ChaosOptions;
  readonly #random: Random;
  readonly #open: { close(): Promise<unknown> }[] = [];
  readonly #deaths: string[] = [];
  readonly #faults: Injected[] = [];
  readonly #topology: Topology;
  readonly #kinds: readonly FaultKind[];

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#topology = options.topology ?? 'standalone';
    this.#kinds = options.only ?? faultKindsOf(this.#topology);
  }

  async run(): Promise<ChaosResult> {
    const servers = this.#keep(await startServers(this.#topology, KEY));
    const connection = servers.connection();
    const control = this.#keep(new Queue(QUEUE, { connection, streams: { events: { maxLen: 100_000_000 } } }));
    control.on('error', () => undefined);
    const observed = this.#keep(await Way.to(servers.ports));
    const observer = new Listener(QUEUE, servers.connection(observed));
    this.#keep(observer);

    const start = (role: Role, name: string, env: Record<string, string | number>) =>
      this.#start(role, name, servers, env);
    const workers = await Promise.all(WORKERS.map((env, i) => start('worker', `w${i + 1}`, env)));
    const producers = await Promise.all(
      Array.from({ length: PRODUCERS }, (_, i) =>
        start('producer', `p${i + 1}`, { SEED: this.#random.next(1e9), PAUSE_MS }),
      ),
    );
    for (const every of SCHEDULERS)
      await control.upsertJobScheduler(`every-${every}`, { every }, { name: 'iteration', data: {} });

    const startedAt = Date.now();
    const standstills: Cause[] = [];
    const unwatch = watchTheMachine((at, returned) => {
      standstills.push({ kind: 'standstill', target: 'all', at, returned });
    });
    const dog = await watchdog(() => servers.admins, { isExcused: (from, to) => this.#isStopped(from, to) });
    const passTime = (when: string): Promise<Calm> => {
      this.#say(`calm time, ${when}: nobody waits beside an idle worker`);
      const plain = workers.filter(({ isPlain }) => isPlain);
      return passCalmly(CALM_MS, plain, servers.admins);
    };
    const calms = [await passTime('before the first fault')];
    producers.forEach((producer) => producer.tell('anything'));
    await this.#injectAll({ queue: control, servers, workers, producers, observed });
    const endedAt = Date.now();
    this.#say('the faults have ended: whoever is active is run by somebody');
    producers.forEach((producer) => producer.tell('mixed'));
    const unrun = await abandoned(control, workers);
    calms.push(await passTime('after the last'));

    this.#say('the end: producers stop, all jobs end, workers close, a quiet worker does what is left');
    await Promise.all(producers.map((producer) => producer.end('stop', END_MS)));
    for (const every of SCHEDULERS) {
      const isIteration = ({ id }: Recorded) => id.startsWith(`repeat:every-${every}:`);
      const before = observer.log.filter(isIteration).length;
      await this.#wrongUnless(
        `scheduler every-${every} goes on`,
        () => observer.log.filter(isIteration).length > before,
      );
      await control.removeJobScheduler(`every-${every}`);
    }
    const left = [...unrun, ...(await calm(control, workers, END_MS))];
    const blocked = await dog.end().then(() => [], String);
    await Promise.all(workers.map((worker) => worker.end('close', END_MS)));
    const quiet = await start('worker', 'quiet', { CONCURRENCY: 50 });
    const unended = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children'] as const;
    const counts = async () => Object.values(await control.getJobCounts(...unended));
    await this.#wrongUnless('all jobs end', async () => (await counts()).every((count) => count === 0));
    await quiet.end('close', END_MS);
    unwatch();

    const members = [...workers, ...producers, quiet];
    const entries = members.flatMap((member) =>
      Array.from({ length: member.life + 1 }, (_, life) =>
        readLedger(member.ledgerOf(life), `${member.name}.${life}`),
      ).flat(),
    );
    const { log: recorded, moves } = await this.#wholeLog(connection, observer);
    const faults = this.#faults.filter(({ at }) => at > 0);
    const kept = await keptJobs(control);
    const evidence = { entries, faults, standstills, recorded, moves, observed: observer.log, kept, left, calms };
    const settled = settle(evidence);
    const said = [...settled.wrong.said, ...this.#deaths];
    const account = { ...settled, wrong: { ...settled.wrong, said, blocked: [blocked].flat() } };
    const [info] = await Promise.all(servers.admins.map((admin) => admin.info('server')));
    const version = /(?:valkey|redis)_version:(\S+)/.exec(info ?? '')?.[0].replace('_version:', ' ') ?? '';
    return {
      account,
      faults,
      entries,
      startedAt,
      endedAt,
      topology: this.#topology,
      servers: `${version}, ${servers.title}`,
      longest: dog.longest,
      ...(!faultless(account) && { evidence: this.#record(account, evidence) }),
    };
  }

  async close(): Promise<void> {
    for (const opened of this.#open.reverse()) await opened.close();
  }

  forget(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Beside the ledgers: what else there is to look at. Returns where. */
  #record(account: Account, evidence: Evidence): string {
    writeFileSync(join(this.folder, 'account.json'), JSON.stringify({ account, ...evidence }, undefined, 2));
    return this.folder;
  }

  /** Whether a server was made to stand still then. */
  #isStopped(from: number, to: number): boolean {
    return this.#faults.some(({ kind, at, returned }) => kind === 'freeze-master' && at <= to && from <= returned);
  }

  /** First each fault alone, then several at a time. */
  async #injectAll(world: World): Promise<void> {
    const begin = performance.now();
    const elapsed = () => (performance.now() - begin) / 1_000;
    const { seconds } = this.#options;
    let bag: FaultKind[] = [];
    const isOver = (end: number) =>
      elapsed() >= end && !(this.#options.each && this.#faults.length < this.#kinds.length);
    const draw = (): FaultKind => {
      if (bag.length === 0) bag = this.#shuffled(this.#kinds);
      return bag.pop() as FaultKind;
    };
    // the load has to be there before
    await sleep(500);
    while (!isOver(seconds / 2)) {
      await this.#inject(draw(), world, false);
      await sleep(500 + this.#random.next(700));
    }
    const underWay = new Set<Promise<void>>();
    const failures: unknown[] = [];
    let wide: Promise<void> | undefined;
    while (elapsed() < seconds && failures.length === 0) {
      const kind = draw();
      if (faultOf(kind).wide) await wide;
      const injecting = this.#inject(kind, world, true)
        .catch((error: unknown) => void failures.push(new Error(`${kind}: ${String(error)}`, { cause: error })))
        .finally(() => underWay.delete(injecting));
      underWay.add(injecting);
      if (faultOf(kind).wide) wide = injecting;
      await sleep(300 + this.#random.next(900));
      while (underWay.size >= 4) await Promise.race(underWay);
    }
    await Promise.all(underWay);
    // not before the others have come to their end
    if (failures.length > 0) throw failures[0];
  }

  async #inject(kind: FaultKind, world: World, mixed: boolean): Promise<void> {
    const injected = await inject(kind, world, this.#random, mixed);
    if (injected.at === 0) return;
    this.#faults.push(injected);
    const { target, detail, at, returned } = injected;
    this.#say(`${kind} ${target} ${detail} (${returned - at} ms)${mixed ? ', mixed' : ''}`);
  }

  #shuffled<T>(list: readonly T[]): T[] {
    const shuffled = [...list];
    for (let i = shuffled.length - 1; i > 0; i--) {
      const j = this.#random.next(i + 1);
      [shuffled[i], shuffled[j]] = [shuffled[j], shuffled[i]];
    }
    return shuffled;
  }

  /** Every end in the event log, and the end of what the observer was still to hear. */
  async #wholeLog(connection: RedisOptions, observer: Listener): Promise<Listener> {
    const reader = new Listener(QUEUE, connection);
    this.#keep(reader);
    const publisher = this.#keep(new QueueEventsProducer(QUEUE, { connection }));
    await publisher.publishEvent({ eventName: 'end-of-run' });
    await until('the end of the event log', () => reader.atEnd && observer.atEnd, END_MS);
    return reader;
  }

  async #start(role: Role, name: string, servers: Servers, env: Record<string, string | number>): Promise<Member> {
    const around: Surroundings = {
      queueName: QUEUE,
      folder: this.folder,
      servers,
      onDeath: (message) => this.#deaths.push(message),
    };
    return this.#keep(await Member.start(role, name, around, { LEASE_MS, SCAN_MS, ...env }));
  }

  async #wrongUnless(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    await until(what, condition, END_MS).catch((error: unknown) => this.#deaths.push(String(error)));
  }

  #keep<T extends { close(): Promise<unknown> }>(opened: T): T {
    this.#open.push(opened);
    return opened;
  }

  #say(line: string): void {
    this.#options.say?.(line);
  }
}

/** Says when this whole process stood still for long enough that leases may have ended, which is nobody's fault. */
function watchTheMachine(stoodStill: (from: number, to: number) => void): () => void {
  let last = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - last > LEASE_MS / 4) stoodStill(last, now);
    last = now;
  }, 100);
  return () => clearInterval(timer);
}
