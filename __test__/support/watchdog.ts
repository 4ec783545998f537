/**
 * The watchdog of long tests: the longest script that the servers saw, and the longest pause of this process's event loop. `end` fails when
 * one of them is over its limit.
 *
 * What the limits are. A time is no measure of what a script does: the machines that run tests differ, and the same one is slower at times. So a
 * limit is a multiple of what known work takes there (pace.ts): so many known scripts, so many pieces of known work. The pace is measured when
 * the watch begins, and again whenever something seems to be over its limit; the slower of this one and the one before counts. What the limits
 * tell apart lies far from them: a call in steps does as much as ten known scripts at most, and one that does all at once as much as hundreds
 * (`__test__/life/watchdog.test.ts` shows that such a one fails).
 *
 * How it judges. Clocks count also the time in which the machine ran something else in the place of who is measured, and the machines that run
 * tests are loaded. Where the system tells how long a thread was ready and did not run (`/proc/<pid>/schedstat` of Linux), that time is taken
 * off, and so is the time that the host of a virtual machine took of its cores: whatever of both fell between two looks, a tenth of a second apart, or
 * longer where a script blocked the server. So a script is judged by the least that it can have taken, and fails nobody who was only kept waiting; one that
 * blocks the server for long exceeds what it may have waited for, and fails. The event loop is judged by the time for which its thread ran. What either
 * spent asleep (for a disk: memory that the system took back has to be read again; or for a process that it started and that had to wait for a core)
 * counts a fifth. So does all time where nothing is told: on another system, of a server on another machine, of one that has just been started.
 */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { measuresPace, scriptPace, workPace } from './pace.js';
import { mastersOf } from './redis.js';
import { transitionOf } from '../../bench/soak/scripts.js';

const LOOK_MS = 100;
const TICK_MS = 10;
const SLOW_US = 5_000;
const KEPT = 1_024;
const BLIND_FACTOR = 5;

export interface WatchdogOptions {
  /** As many known scripts as one script may be worth. */
  readonly mostScript?: number;
  /** As many pieces of known work as the event loop may stand still for; `Infinity` for a test that itself works for long. */
  readonly mostPause?: number;
  /** Only scripts that name it in their first arguments, for instance a queue's name: a server that tests share has other scripts, too. */
  readonly about?: string;
  /** Whether what lies between two moments (epoch ms) is the test's own doing: it has stopped a server, for instance. Asked at the end. */
  readonly isExcused?: (from: number, to: number) => boolean;
}

/** What took its time. */
export interface Held {
  /** Name of the script, or of the command; `event loop`. */
  readonly by: string;
  /** Milliseconds by the clock. */
  readonly clockMs: number;
  /** The least that it can have taken; where nobody knows that, a fifth of the clock's. */
  readonly ms: number;
  /** What the known work took then, in milliseconds: `ms` is judged as a multiple of it. */
  readonly pace: number;
  /** Epoch ms; of a script the server tells it in whole seconds. */
  readonly from: number;
  readonly to: number;
}

export interface Watchdog {
  /** The longest so far: by the least that they can have taken, as a multiple of the known work. */
  readonly longest: { script: Held | undefined; pause: Held | undefined };
  /** Looks at the servers now: what waited before it is not taken off what comes behind it. */
  look(): Promise<void>;
  /** Stops watching; throws when a limit was exceeded. */
  end(): Promise<void>;
}

/**
 * Starts watching this process, and the masters behind this client, which stays open until `end`; or the servers of these clients, which may
 * be others each time, and may go and come again.
 */
export async function watchdog(
  client: Redis | (() => readonly Redis[]),
  options: WatchdogOptions = {},
): Promise<Watchdog> {
  const { mostScript = 20, mostPause = 50, about = '', isExcused = () => false } = options;
  const clients = typeof client === 'function' ? client : () => mastersOf(client);
  const servers = new Map<Redis, WatchedServer>();
  const watchNew = () =>
    Promise.all(
      clients().map(async (one) => {
        if (servers.has(one)) return;
        const server = new WatchedServer(one, about, mostScript);
        servers.set(one, server);
        await server.prepare();
      }),
    );
  await watchNew();
  const loop = new WatchedLoop(mostPause);
  const timer = setInterval(() => {
    void watchNew();
    void look();
  }, LOOK_MS);
  const look = async () => void (await Promise.all([...servers.values()].map((server) => server.look())));
  const counted = (all: readonly Held[]) => worst(all.filter(({ from, to }) => !isExcused(from, to)));
  const longest = () => ({
    script: counted([...servers.values()].flatMap(({ slow }) => slow)),
    pause: counted(loop.slow),
  });
  return {
    get longest() {
      return longest();
    },
    look,
    async end() {
      loop.end();
      clearInterval(timer);
      await Promise.all([...servers.values()].map((server) => server.end()));
      const { script, pause } = longest();
      const over = [
        exceeds(script, mostScript, 'known scripts'),
        exceeds(pause, mostPause, 'pieces of known work'),
      ].filter((text) => text !== '');
      if (over.length > 0) throw new Error(`the watchdog: ${over.join('; ')}`);
    },
  };
}

/** As many times the known work as it was. */
function worth({ ms, pace }: Pick<Held, 'ms' | 'pace'>): number {
  return ms / pace;
}

function exceeds(held: Held | undefined, most: number, known: string): string {
  if (!held || worth(held) <= most) return '';
  const { by, ms, clockMs, pace } = held;
  const took = `${by} took at least ${ms.toFixed(1)} ms (${clockMs.toFixed(1)} by the clock)`;
  return `${took}: as much as ${worth(held).toFixed(1)} ${known} of ${pace.toFixed(2)} ms, of ${most}`;
}

/** For a report. */
export function describeHeld(held: Held | undefined): string {
  if (!held) return `less than ${SLOW_US / 1_000} ms`;
  const name = held.by === 'event loop' ? '' : ` (${held.by})`;
  return `at least ${held.ms.toFixed(1)} ms, ${held.clockMs.toFixed(1)} by the clock${name}`;
}

function worst(all: readonly Held[]): Held | undefined {
  const compare = (one: Held, other: Held) => worth(one) - worth(other) || one.clockMs - other.clockMs;
  return all.reduce<Held | undefined>((one, other) => (one && compare(one, other) >= 0 ? one : other), undefined);
}

/** What was slow, of which only the worst is of interest once there is much of it. */
class Slow {
  #all: Held[] = [];

  get all(): readonly Held[] {
    return this.#all;
  }

  add(held: Held): void {
    this.#all.push(held);
    if (this.#all.length > 2 * KEPT) this.#all = this.#all.sort((a, b) => worth(b) - worth(a)).slice(0, KEPT);
  }
}

type SlowEntry = [id: number, seconds: number, us: number, command: string[]];

/** A server, and its commands that took long. */
class WatchedServer {
  readonly #client: Redis;
  readonly #about: string;
  readonly #most: number;
  readonly #slow = new Slow();
  #pace = 0;
  #last = -1;
  #run: string | undefined;
  #thread: string | undefined;
  #spent: Spent | undefined;
  #prepared: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  /** A server that was started again has forgotten what it is to write down. */
  readonly #onReady = () => void this.prepare();

  constructor(client: Redis, about: string, most: number) {
    this.#client = client;
    this.#about = about;
    this.#most = most;
    client.on('ready', this.#onReady);
  }

  get slow(): readonly Held[] {
    return this.#slow.all;
  }

  prepare(): Promise<void> {
    this.#prepared = this.#prepare();
    return this.#prepared;
  }

  async #prepare(): Promise<void> {
    this.#spent = undefined;
    try {
      await this.#client.config('SET', 'slowlog-log-slower-than', String(SLOW_US), 'slowlog-max-len', String(KEPT));
      const info = await this.#client.info('server');
      const [pid = '', run] = [/process_id:(\d+)/.exec(info)?.[1], /run_id:(\w+)/.exec(info)?.[1]];
      this.#thread = isServer(pid) ? pid : undefined;
      // what was slow before the first look is not counted; the ids of a server that was started again begin anew
      if (!this.#run) this.#last = ((await this.#client.slowlog('GET', 1)) as SlowEntry[])[0]?.[0] ?? -1;
      else if (this.#run !== run) this.#last = -1;
      this.#run = run;
      await this.#measure();
      this.#spent = this.#readSpent();
    } catch {
      // it is gone, and says so when it is there again
    }
  }

  /** Notes what was slow since the look before, unless that one still waits for an answer. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** Looks for the last time. */
  async end(): Promise<void> {
    this.#client.off('ready', this.#onReady);
    await this.#looking;
    await this.look();
  }

  async #look(): Promise<void> {
    await this.#prepared;
    let entries: SlowEntry[];
    const [before, now] = [this.#spent, this.#readSpent()];
    try {
      entries = (await this.#client.slowlog('GET', KEPT)) as SlowEntry[];
      const after = this.#readSpent();
      const spent = before && after && { before, after };
      // what the server does behind its answer, before this process reads it, belongs to the next look
      this.#spent = now;
      // ids start anew with the server
      const isNew = ([id]: SlowEntry) => id > this.#last || (entries[0]?.[0] ?? 0) < this.#last;
      const slow = entries
        .filter((entry) => isNew(entry) && isScript(entry, this.#about))
        .map((entry) => held(entry, spent));
      const pace = slow.some(({ ms }) => ms > this.#most * this.#pace) ? await this.#measure() : this.#pace;
      for (const one of slow) this.#slow.add({ ...one, pace });
    } catch {
      // a server that a test has ended; its waiting time starts anew
      this.#spent = undefined;
      return;
    }
    this.#last = entries[0]?.[0] ?? this.#last;
  }

  #readSpent(): Spent | undefined {
    return this.#thread === undefined ? undefined : readSpent(this.#thread);
  }

  /** Measures the pace; gives the slower of this one and the one before. */
  async #measure(): Promise<number> {
    const before = this.#pace;
    this.#pace = await scriptPace(this.#client);
    return Math.max(before, this.#pace);
  }
}

function isScript([, , , [command = '', ...args]]: SlowEntry, about: string): boolean {
  if (!/^(eval|fcall)/i.test(command) || measuresPace(args)) return false;
  return args.some((part) => part.includes(about));
}

function held(
  [, seconds, us, [command = '', script = '']]: SlowEntry,
  spent: SpentBetween | undefined,
): Omit<Held, 'pace'> {
  const [by, clockMs] = [transitionOf(script) ?? command.toLowerCase(), us / 1_000];
  const [from, to] = [seconds * 1_000 - clockMs, (seconds + 1) * 1_000];
  const least = spent ? leastOfScript(clockMs, spent.before, spent.after) : clockMs / BLIND_FACTOR;
  return { by, clockMs, ms: Math.max(least, 0), from, to };
}

/** The event loop of this thread: what comes late tells how long nothing came. */
class WatchedLoop {
  readonly #most: number;
  readonly #slow = new Slow();
  readonly #timer: NodeJS.Timeout;
  #pace: number;
  #at: number;
  #spent: Spent | undefined;

  constructor(most: number) {
    this.#most = most;
    this.#pace = workPace();
    [this.#at, this.#spent] = [performance.now(), readSpent('thread-self')];
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  get slow(): readonly Held[] {
    return this.#slow.all;
  }

  #tick(): void {
    const [now, spent] = [performance.now(), readSpent('thread-self')];
    const clockMs = now - this.#at - TICK_MS;
    const [from, to] = [performance.timeOrigin + this.#at, performance.timeOrigin + now];
    const least = spent && this.#spent ? leastOf(clockMs, this.#spent, spent) : clockMs / BLIND_FACTOR;
    const ms = Math.max(least, 0);
    const before = this.#pace;
    if (ms > this.#most * this.#pace) this.#pace = workPace();
    this.#slow.add({ by: 'event loop', clockMs, ms, pace: Math.max(before, this.#pace), from, to });
    // without what it took to measure the pace
    [this.#at, this.#spent] = [performance.now(), readSpent('thread-self')];
  }

  end(): void {
    this.#tick();
    clearInterval(this.#timer);
  }
}

/** What a thread can have taken at least of the time between two ticks that it came late by. */
function leastOf(lateMs: number, before: Spent, after: Spent): number {
  const [ranMs, waitedMs] = [(after.ranNs - before.ranNs) / 1e6, (after.waitedNs - before.waitedNs) / 1e6];
  return Math.max(Math.min(ranMs, lateMs), (lateMs - waitedMs) / BLIND_FACTOR);
}

/** What a script can have taken at least, between two looks at the server. */
function leastOfScript(clockMs: number, before: Spent, after: Spent): number {
  const [ranMs, waitedMs] = [(after.ranNs - before.ranNs) / 1e6, (after.waitedNs - before.waitedNs) / 1e6];
  const awakeMs = clockMs - waitedMs;
  return Math.max(Math.min(ranMs, awakeMs), awakeMs / BLIND_FACTOR);
}

/** Nanoseconds for which a thread ran, and for which it was ready and did not run; what the host took counts as waited for. */
interface Spent {
  readonly ranNs: number;
  readonly waitedNs: number;
}

interface SpentBetween {
  readonly before: Spent;
  readonly after: Spent;
}

/** What the main thread of this process, or `thread-self`, has spent so far; `undefined` where nobody tells. */
function readSpent(pid: string): Spent | undefined {
  try {
    const [ranNs = NaN, waitedNs = NaN] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number);
    return Number.isFinite(waitedNs) ? { ranNs, waitedNs: waitedNs + stolenNs() } : undefined;
  } catch {
    return undefined;
  }
}

/** What the host of a virtual machine took of all its cores so far (`steal` of `/proc/stat`, in hundredths of a second). */
function stolenNs(): number {
  const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/ +/) ?? [];
  return Number(times[7] ?? 0) * 1e7;
}

/** Whether the process of this id on this machine is a server: one of another machine may have the same id. */
function isServer(pid: string): boolean {
  try {
    return /redis|valkey/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'));
  } catch {
    return false;
  }
}
