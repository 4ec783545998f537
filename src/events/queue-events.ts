import { CONNECTION, TARGET } from '../connection/members.js';
import type { Backend, BackendFactory } from '../connection/backend.js';
import { forwardRejection } from '../errors/emit-error.js';
import { native } from '../native/addon.js';
import type { EventsMessage, NativeEvents, NativeEventTexts } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { QueueEventsOptions } from '../options/queue-events.js';
import { QueueBase } from '../queue/queue-base.js';
import { Readiness } from '../connection/readiness.js';
import { reportConnection } from '../connection/report-connection.js';
import { parseStored } from '../job/stored-json.js';
import type { GivenConnection } from '../types/given-connection.js';
import type { QueueEventsListener } from './queue-events-listener.js';

// Symbols, not `#` names: a Proxy around queue events has none of those, and a subclass may call its members what it likes.
const ENGINE: unique symbol = Symbol('engine');
const READINESS: unique symbol = Symbol('readiness');
const LISTENED_TO: unique symbol = Symbol('listened to');
const OF_JOBS: unique symbol = Symbol('of jobs');
const MANY: unique symbol = Symbol('many');
const FORGET_UNHEARD: unique symbol = Symbol('forget unheard');
const END_RUN: unique symbol = Symbol('end run');
const GIVE_UP: unique symbol = Symbol('give up');
const RECEIVE: unique symbol = Symbol('receive');
const CLOSE_ALL: unique symbol = Symbol('close all');
const ANNOUNCE_ALL: unique symbol = Symbol('announce all');
const HEARS_OF: unique symbol = Symbol('hears of');
const ANNOUNCE: unique symbol = Symbol('announce');
const IS_EMIT_REPLACED: unique symbol = Symbol('is emit replaced');
const HEARS_OF_JOB: unique symbol = Symbol('hears of job');
const NOTE_LISTENER: unique symbol = Symbol('note listener');

/** Milliseconds one read waits, unless `blockingTimeout` says otherwise. */
const BLOCKING_TIMEOUT = 10_000;

type Parameters<T> = T extends (...args: infer Args) => void ? Args : never;
type KeyOf<T extends object> = Extract<keyof T, string>;

/** Names of events of single jobs of which so many are looked through at each message. */
const FEW = 64;

/** The arguments of an event as they are stored: all are texts. */
type StoredArgs = Record<string, string>;

/**
 * Listens to everything that happens in a queue, in whatever process. Each event about a job is emitted twice: `E`, and
 * then `E:<job id>`.
 *
 * @typeParam ReturnType - type of what processors return
 * Source: BullMQ 6.7.0 `QueueEvents`.
 */
export class QueueEvents<
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's default: results are of any type
  ReturnType = any,
  B = Backend,
  ConnectionOptionsType = ConnectionOptions,
> extends QueueBase<B, ConnectionOptionsType> {
  /** The options given, with the defaults filled in. */
  declare opts: QueueEventsOptions<ConnectionOptionsType>;
  /** @internal */
  readonly [ENGINE]: NativeEvents;
  /** @internal */
  readonly [READINESS]: Readiness;
  /** @internal Names of events that somebody has listened to. */
  readonly [LISTENED_TO] = new Set<string>();
  /** @internal Names of events of single jobs to which somebody may listen. */
  readonly [OF_JOBS] = new Set<string>();
  /** @internal How many of them may be there before they are looked through again. */
  [MANY] = 0;
  private running = false;
  /** @internal Settles the promise of `run()`. */
  [END_RUN]: { resolve: () => void; reject: (error: Error) => void } | undefined = undefined;

  /**
   * Starts listening at once, unless `autorun` is false. An unreachable server is reported by the `error` event.
   * @throws as `Queue`
   */
  constructor(
    name: string,
    opts?: QueueEventsOptions<GivenConnection<ConnectionOptionsType>>,
    backendFactory?: BackendFactory<B, ConnectionOptionsType>,
  ) {
    super(name, { connection: {} as GivenConnection<ConnectionOptionsType>, ...opts }, backendFactory, true);
    const { autorun = true, ...shown } = this.opts;
    this.opts = { blockingTimeout: BLOCKING_TIMEOUT, ...shown };
    const { blockingTimeout = BLOCKING_TIMEOUT } = shown;
    // 0 waits for ever: one read follows another
    const wait = Number(blockingTimeout) > 0 ? blockingTimeout : BLOCKING_TIMEOUT;
    const lastEventId = String(this.opts.lastEventId || '$');
    this[ENGINE] = new native.NativeEvents({ ...this[TARGET], lastEventId, blockingTimeout: wait }, (message) =>
      this[RECEIVE](message),
    );
    this[READINESS] = new Readiness(
      () => this[ENGINE].ready(),
      this[CONNECTION].retryStrategy,
      (error) => this[GIVE_UP](error),
    );
    if (autorun) forwardRejection(this, this.run());
  }

  /**
   * Starts listening; only needed with `autorun: false`.
   * @returns a promise that settles at `close()`
   * @throws (rejects) Error `Queue Events is already running.`, also once it ran and is closed; the error of a connection
   * that never was, when `retryStrategy` gives up
   */
  async run(): Promise<void> {
    if (this.running) throw new Error('Queue Events is already running.');
    this.running = true;
    if (this.closing) return;
    const ended = new Promise<void>((resolve, reject) => (this[END_RUN] = { resolve, reject }));
    const { surrendered } = this[READINESS];
    if (surrendered) this[GIVE_UP](surrendered);
    else this[ENGINE].run();
    await ended;
  }

  /** @internal `retryStrategy` wants no further try; as in BullMQ, who was never connected may run again. */
  [GIVE_UP](error: Error): void {
    void this[ENGINE].close();
    if (this[READINESS].wasUp) return;
    this.running = false;
    this[END_RUN]?.reject(error);
  }

  override waitUntilReady(): Promise<void> {
    return this[READINESS].wait();
  }

  /** Stops listening and disconnects. A second call returns the promise of the first. */
  override close(): Promise<void> {
    return (this.closing ??= this[CLOSE_ALL]());
  }

  /** @internal */
  async [CLOSE_ALL](): Promise<void> {
    this[READINESS].stop();
    try {
      await this[ENGINE].close();
    } finally {
      this[END_RUN]?.resolve();
      this.closed = true;
    }
  }

  /** Disconnects; the same as `close()`. */
  override disconnect(): Promise<void> {
    return this.close();
  }

  /** @internal */
  [RECEIVE](message: EventsMessage): void {
    if (message.events) this[ANNOUNCE_ALL](message.events);
    reportConnection(this, this[READINESS], message, message.error);
  }

  /** @internal Announces events in their order. The text of events to which nobody listens, which are most, is not parsed. */
  [ANNOUNCE_ALL]({ names, texts, runs }: NativeEventTexts): void {
    this[FORGET_UNHEARD]();
    const parsed: ([id: string, args: StoredArgs][] | undefined)[] = [];
    const next = names.map(() => 0);
    for (let run = 0; run < runs.length; run += 2) {
      const name = runs[run];
      const from = next[name];
      next[name] += runs[run + 1];
      // whoever hears an event may begin to listen to the one behind it
      if (!this[HEARS_OF](names[name])) continue;
      const events = (parsed[name] ??= JSON.parse(texts[name]) as [string, StoredArgs][]);
      for (let at = from; at < next[name]; at += 1) this[ANNOUNCE](events[at][0], names[name], events[at][1]);
    }
  }

  /** @internal Drops names to which nobody listens any more; of many not at each message. */
  [FORGET_UNHEARD](): void {
    const names = this[OF_JOBS];
    if (names.size > FEW && names.size <= this[MANY]) return;
    for (const name of names) if (this.listenerCount(name) === 0) names.delete(name);
    this[MANY] = 2 * names.size;
  }

  /** @internal Whether somebody listens, or has listened, to events of this name, of all jobs or of one. */
  [HEARS_OF](event: string): boolean {
    // a user's own event may have a colon in its name; who puts an `emit` of its own in the place of ours hears all events
    return this[LISTENED_TO].has(event) || event.includes(':') || this[IS_EMIT_REPLACED];
  }

  /** @internal Where nobody listens to events of single jobs, each of their names would be looked up in vain. */
  [HEARS_OF_JOB](jobId: string | undefined): jobId is string {
    return jobId !== undefined && (this[OF_JOBS].size > 0 || this[IS_EMIT_REPLACED]);
  }

  /** @internal */
  get [IS_EMIT_REPLACED](): boolean {
    return this.emit !== ownEmit;
  }

  /** @internal @param name that of an event, or `<event>:<job id>` */
  [NOTE_LISTENER](name: string | symbol): void {
    if (typeof name !== 'string') return;
    this[LISTENED_TO].add(name.split(':', 1)[0]);
    if (name.includes(':')) this[OF_JOBS].add(name);
  }

  /** @internal */
  [ANNOUNCE](id: string, event: string, stored: StoredArgs): void {
    if (event === 'drained') {
      this.emit('drained', id);
      return;
    }
    const { jobId } = stored;
    const isHeard =
      this[IS_EMIT_REPLACED] ||
      this.listenerCount(event) > 0 ||
      (this[HEARS_OF_JOB](jobId) && this.listenerCount(`${event}:${jobId}`) > 0);
    if (!isHeard) return;
    const args = decodeArgs(event, stored);
    const emit = this.emit.bind(this) as (event: string, ...args: unknown[]) => boolean;
    emit(event, args, id);
    // perhaps only by now
    if (this[HEARS_OF_JOB](jobId)) emit(`${event}:${jobId}`, args, id);
  }

  override emit<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, ...args: Parameters<QEL[U]>): boolean;
  override emit(event: string, ...args: unknown[]): boolean {
    return super.emit(event, ...args);
  }

  /** Calls `listener` at each event of this name. */
  override on<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    this[NOTE_LISTENER](event);
    return super.on(event, listener as (...args: unknown[]) => void);
  }

  /** Calls `listener` at the next event of this name. */
  override once<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    this[NOTE_LISTENER](event);
    return super.once(event, listener as (...args: unknown[]) => void);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override addListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this[NOTE_LISTENER](event);
    return super.addListener(event, listener);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override prependListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this[NOTE_LISTENER](event);
    return super.prependListener(event, listener);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override prependOnceListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this[NOTE_LISTENER](event);
    return super.prependOnceListener(event, listener);
  }

  /** Removes a listener. */
  override off<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    return super.off(event, listener as (...args: unknown[]) => void);
  }
}

/** The arguments as listeners get them: texts, but for the three that BullMQ decodes. */
function decodeArgs(event: string, stored: StoredArgs): Record<string, unknown> {
  if (event === 'progress') return { ...stored, data: parseStored<unknown>(stored.data ?? 'null', stored.data) };
  if (event === 'completed')
    return { ...stored, returnvalue: parseStored<unknown>(stored.returnvalue ?? 'null', stored.returnvalue) };
  if (event === 'delayed') return { ...stored, delay: Number(stored.delay) };
  return stored;
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
const { emit: ownEmit } = QueueEvents.prototype;
