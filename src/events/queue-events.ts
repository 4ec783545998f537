import type { Backend, BackendFactory } from '../connection/backend.js';
import { forwardRejection } from '../errors/emit-error.js';
import { native } from '../native/addon.js';
import type { EventsMessage, NativeEvents } from '../native/types.js';
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
  private readonly engine: NativeEvents;
  private readonly readiness: Readiness;
  private running = false;
  /** Settles the promise of `run()`. */
  private endRun: (() => void) | undefined = undefined;

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
    this.engine = new native.NativeEvents({ ...this.target, lastEventId, blockingTimeout }, (message) =>
      this.receive(message),
    );
    this.readiness = new Readiness(() => this.engine.ready(), this.connection.retryStrategy);
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
    const ended = new Promise<void>((resolve) => (this.endRun = resolve));
    this.engine.run();
    await ended;
  }

  override waitUntilReady(): Promise<void> {
    return this.readiness.wait();
  }

  /** Stops listening and disconnects. A second call returns the promise of the first. */
  override close(): Promise<void> {
    return (this.closing ??= this.closeAll());
  }

  private async closeAll(): Promise<void> {
    this.readiness.stop();
    try {
      await this.engine.close();
    } finally {
      this.endRun?.();
      this.closed = true;
    }
  }

  /** Disconnects; the same as `close()`. */
  override disconnect(): Promise<void> {
    return this.close();
  }

  private receive(message: EventsMessage): void {
    if (message.events) {
      const events = JSON.parse(message.events) as [id: string, event: string, args: StoredArgs][];
      for (const [id, event, args] of events) this.announce(id, event, args);
    }
    reportConnection(this, this.readiness, message, message.error);
  }

  private announce(id: string, event: string, stored: StoredArgs): void {
    if (event === 'drained') {
      this.emit('drained', id);
      return;
    }
    const { jobId } = stored;
    const ofJob = jobId === undefined ? undefined : `${event}:${jobId}`;
    const heard = this.listenerCount(event) > 0 || (ofJob !== undefined && this.listenerCount(ofJob) > 0);
    // who puts an `emit` of its own in the place of ours hears all events
    if (!heard && this.emit === QueueEvents.prototype.emit) return;
    const args = decodeArgs(event, stored);
    const emit = this.emit.bind(this) as (event: string, ...args: unknown[]) => boolean;
    emit(event, args, id);
    if (ofJob !== undefined) emit(ofJob, args, id);
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
    return super.on(event, listener as (...args: unknown[]) => void);
  }

  /** Calls `listener` at the next event of this name. */
  override once<
    QEL extends QueueEventsListener<ReturnType> = QueueEventsListener<ReturnType>,
    U extends KeyOf<QEL> = KeyOf<QEL>,
  >(event: U, listener: QEL[U]): this {
    return super.once(event, listener as (...args: unknown[]) => void);
  }

  /** Takes a listener away. */
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
