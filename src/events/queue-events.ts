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
import type { QueueEventsListener } from './queue-events-listener.js';

/** Milliseconds one read waits, unless `blockingTimeout` says otherwise. */
const BLOCKING_TIMEOUT = 10_000;

type Parameters<T> = T extends (...args: infer Args) => void ? Args : never;
type KeyOf<T extends object> = Extract<keyof T, string>;

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
  readonly #engine: NativeEvents;
  readonly #readiness: Readiness;
  /** Names of events that somebody has listened to. */
  readonly #listenedTo = new Set<string>();
  /** Whether somebody may listen to events of single jobs. */
  #hearsOfJobs = false;
  private running = false;
  /** Settles the promise of `run()`. */
  #endRun: (() => void) | undefined = undefined;

  /**
   * Starts listening at once, unless `autorun` is false. An unreachable server is reported by the `error` event.
   * @throws as `Queue`
   */
  constructor(name: string, opts?: QueueEventsOptions<ConnectionOptionsType>, backendFactory?: BackendFactory<B>) {
    super(name, { connection: {} as ConnectionOptionsType, ...opts }, { connection: 'blocking', backendFactory });
    const { autorun = true, ...shown } = this.opts;
    this.opts = { blockingTimeout: BLOCKING_TIMEOUT, ...shown };
    const { blockingTimeout = BLOCKING_TIMEOUT } = shown;
    const lastEventId = String(this.opts.lastEventId || '$');
    this.#engine = new native.NativeEvents({ ...this[TARGET], lastEventId, blockingTimeout }, (message) =>
      this.#receive(message),
    );
    this.#readiness = new Readiness(() => this.#engine.ready(), this[CONNECTION].retryStrategy);
    if (autorun) forwardRejection(this, this.run());
  }

  /**
   * Starts listening; only needed with `autorun: false`.
   * @returns a promise that settles at `close()`
   * @throws (rejects) Error `Queue Events is already running.`, also once it ran and is closed
   */
  async run(): Promise<void> {
    if (this.running) throw new Error('Queue Events is already running.');
    this.running = true;
    if (this.closing) return;
    const ended = new Promise<void>((resolve) => (this.#endRun = resolve));
    this.#engine.run();
    await ended;
  }

  override waitUntilReady(): Promise<void> {
    return this.#readiness.wait();
  }

  /** Stops listening and disconnects. A second call returns the promise of the first. */
  override close(): Promise<void> {
    return (this.closing ??= this.#closeAll());
  }

  async #closeAll(): Promise<void> {
    this.#readiness.stop();
    try {
      await this.#engine.close();
    } finally {
      this.#endRun?.();
      this.closed = true;
    }
  }

  /** Disconnects; the same as `close()`. */
  override disconnect(): Promise<void> {
    return this.close();
  }

  #receive(message: EventsMessage): void {
    if (message.events) this.#announceAll(message.events);
    reportConnection(this, this.#readiness, message, message.error);
  }

  /** Announces events in their order. The text of events to which nobody listens, which are most, is not parsed. */
  #announceAll({ names, texts, runs }: NativeEventTexts): void {
    this.#hearsOfJobs &&= this.eventNames().some(isOfJob);
    const parsed: ([id: string, args: StoredArgs][] | undefined)[] = [];
    const next = names.map(() => 0);
    for (let run = 0; run < runs.length; run += 2) {
      const name = runs[run];
      const from = next[name];
      next[name] += runs[run + 1];
      // whoever hears an event may begin to listen to the one behind it
      if (!this.#hearsOf(names[name])) continue;
      const events = (parsed[name] ??= JSON.parse(texts[name]) as [string, StoredArgs][]);
      for (let at = from; at < next[name]; at += 1) this.#announce(events[at][0], names[name], events[at][1]);
    }
  }

  /** Whether somebody listens, or has listened, to events of this name, of all jobs or of one. */
  #hearsOf(event: string): boolean {
    // a user's own event may have a colon in its name; who puts an `emit` of its own in the place of ours hears all events
    return this.#listenedTo.has(event) || event.includes(':') || this.#isEmitReplaced;
  }

  /** Where nobody listens to events of single jobs, each of their names would be looked up in vain. */
  #hearsOfJob(jobId: string | undefined): jobId is string {
    return jobId !== undefined && (this.#hearsOfJobs || this.#isEmitReplaced);
  }

  get #isEmitReplaced(): boolean {
    return this.emit !== QueueEvents.prototype.emit;
  }

  /** @param name that of an event, or `<event>:<job id>` */
  #noteListener(name: string | symbol): void {
    if (typeof name === 'string') this.#listenedTo.add(name.split(':', 1)[0]);
    this.#hearsOfJobs ||= isOfJob(name);
  }

  #announce(id: string, event: string, stored: StoredArgs): void {
    if (event === 'drained') {
      this.emit('drained', id);
      return;
    }
    const { jobId } = stored;
    const isHeard =
      this.#isEmitReplaced ||
      this.listenerCount(event) > 0 ||
      (this.#hearsOfJob(jobId) && this.listenerCount(`${event}:${jobId}`) > 0);
    if (!isHeard) return;
    const args = decodeArgs(event, stored);
    const emit = this.emit.bind(this) as (event: string, ...args: unknown[]) => boolean;
    emit(event, args, id);
    // perhaps only by now
    if (this.#hearsOfJob(jobId)) emit(`${event}:${jobId}`, args, id);
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
    this.#noteListener(event);
    return super.on(event, listener as (...args: unknown[]) => void);
  }

  /** Calls `listener` at the next event of this name. */
  override once<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    this.#noteListener(event);
    return super.once(event, listener as (...args: unknown[]) => void);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override addListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this.#noteListener(event);
    return super.addListener(event, listener);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override prependListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this.#noteListener(event);
    return super.prependListener(event, listener);
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- EventEmitter's own signature
  override prependOnceListener(event: string | symbol, listener: (...args: any[]) => void): this {
    this.#noteListener(event);
    return super.prependOnceListener(event, listener);
  }

  /** Takes a listener away. */
  override off<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    return super.off(event, listener as (...args: unknown[]) => void);
  }
}

function isOfJob(name: string | symbol): boolean {
  return typeof name === 'string' && name.includes(':');
}

/** The arguments as listeners get them: texts, but for the three that BullMQ decodes. */
function decodeArgs(event: string, stored: StoredArgs): Record<string, unknown> {
  if (event === 'progress') return { ...stored, data: parseStored<unknown>(stored.data ?? 'null', stored.data) };
  if (event === 'completed')
    return { ...stored, returnvalue: parseStored<unknown>(stored.returnvalue ?? 'null', stored.returnvalue) };
  if (event === 'delayed') return { ...stored, delay: Number(stored.delay) };
  return stored;
}
