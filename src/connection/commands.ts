/** The connection of one `Queue`, or of a worker's jobs, for all commands outside the worker's loop. */
import { ANY_QUEUE, startingJobs } from '../add/calls-under-way.js';
import { onClientEnd } from './client-end.js';
import type { Connection } from './read-connection.js';
import { ConnectionClosedError } from '../errors/connection-closed-error.js';
import { remade } from '../native/native-error.js';
import { LogRows } from './log-rows.js';
import { native } from '../native/addon.js';
import type { NativeAddedFlows, NativeFlows, NativeQueue, NativeQueueOptions, QueueMessage } from '../native/types.js';
import { Producer } from '../add/producer.js';
import { Readiness } from './readiness.js';
import { reportConnection } from './report-connection.js';

/** An object whose connection this is: it emits what the connection reports. */
export interface CommandsOwner {
  readonly closing: Promise<void> | undefined;
  emit(event: string, ...args: unknown[]): boolean;
}

/** Milliseconds for which a close waits for a server that keeps the connection and answers nothing, and a disconnect for all answers. */
const PATIENCE_MS = 2_000;

// Taken at load, so that a user's fake timers do not hold up a close.
const { setInterval, clearInterval, setTimeout, clearTimeout } = globalThis;

/** Watches whether any of the commands under way is answered. */
class Silence {
  /** Resolves when none was for that long. */
  readonly fell: Promise<false>;
  private timer: NodeJS.Timeout | undefined = undefined;

  constructor(unanswered: () => number) {
    let before = unanswered();
    this.fell = new Promise((resolve) => {
      if (before === 0) return;
      this.timer = setInterval(() => {
        const now = unanswered();
        if (now > 0 && now === before) resolve(false);
        before = now;
      }, PATIENCE_MS);
    });
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

export class Commands {
  readonly producer: Producer;
  /** Rows are added behind the jobs of the same tick. */
  readonly logRows = new LogRows(() => {
    this.producer.flush();
    return this.usable();
  });
  /** Qualified name of the queue. */
  private readonly queue: string;
  private readonly readiness: Readiness;
  private readonly owners: CommandsOwner[];
  /** Those of other queues that go by this connection. */
  private readonly guests: Commands[] = [];
  private opened: NativeQueue | undefined;
  private disconnecting: Promise<void> | undefined;
  private unfollow: (() => void) | undefined = undefined;
  /** Why no command is taken any more. */
  private ended: Error | undefined;

  constructor(
    owner: CommandsOwner,
    private readonly target: NativeQueueOptions,
    private readonly connection: Connection,
    private readonly host?: Commands,
  ) {
    this.owners = [owner];
    this.queue = `${target.prefix}:${target.name}`;
    this.producer = new Producer(() => this.usable(), this.queue);
    this.readiness =
      host?.readiness ??
      new Readiness(
        () => this.open().ready(),
        connection.retryStrategy,
        (error) => this.end(error),
      );
    if (connection.client && !host) this.unfollow = onClientEnd(connection.client, () => this.endWithClient());
  }

  private endWithClient(): void {
    this.emit('ioredis:close');
    void this.close();
  }

  /** Commands for another queue by this connection, whose owners hear of it. They end with it, and have no close of their own. */
  beside(owner: CommandsOwner, target: NativeQueueOptions): Commands {
    const guest = new Commands(owner, target, this.connection, this);
    guest.ended = this.ended;
    this.guests.push(guest);
    return guest;
  }

  /**
   * The connection, opened at the first use. Adds and log rows of this tick are sent before the command about to be given, so
   * commands take effect in the order of the calls.
   * @throws ConnectionClosedError after `close()`; an Error with ioredis's text when the connection is down and
   * commands are not to wait for it
   */
  get native(): NativeQueue {
    this.producer.flush();
    this.logRows.flush();
    return this.usable();
  }

  /** Connects in the background, if that has not happened yet. */
  open(): NativeQueue {
    if (this.ended) throw remade(this.ended);
    if (!this.opened) {
      this.opened = new native.NativeQueue(
        this.target,
        (message) => this.receive(message),
        (request, first) => this.producer.settleAdded(request, first),
        this.host?.open(),
      );
      if (!this.host) this.ready().catch(() => {}); // a failed connection is reported by its `error`
    }
    return this.opened;
  }

  /** State of the connection, in ioredis's words. */
  get status(): 'connecting' | 'ready' | 'end' {
    if (this.ended) return 'end';
    return this.readiness.isUp ? 'ready' : 'connecting';
  }

  /** Resolves when the connection is usable. */
  ready(): Promise<void> {
    return this.readiness.wait();
  }

  private usable(): NativeQueue {
    const { failFast } = this.connection;
    const opened = this.open();
    if (failFast && !this.readiness.isUp && (failFast === 'always' || this.readiness.wasUp)) {
      throw new Error("Stream isn't writeable and enableOfflineQueue options is false");
    }
    return opened;
  }

  private receive(message: QueueMessage): void {
    if (message.added) this.producer.settle(message.added);
    reportConnection(this, this.readiness, message, message.error);
  }

  /** Another object uses the connection from now on: it hears of it, too. */
  share(owner: CommandsOwner): this {
    this.owners.push(owner);
    return this;
  }

  /** The promise of the `close()` of whoever closes it. */
  get closing(): Promise<void> | undefined {
    return this.owners.find(({ closing }) => closing !== undefined)?.closing;
  }

  /** Tells all who use the connection. */
  emit(event: string, ...args: unknown[]): void {
    for (const owner of this.owners) owner.emit(event, ...args);
  }

  /** A call that lets jobs of this queue start: workers of this thread start them when its caller has gone on. */
  starting<T>(call: (native: NativeQueue) => Promise<T>): Promise<T> {
    const { native } = this;
    return startingJobs(this.queue, () => call(native));
  }

  /** As {@link starting}, for a call that may let parents in other queues start. */
  startingParents<T>(call: (native: NativeQueue) => Promise<T>): Promise<T> {
    const { native } = this;
    return startingJobs(ANY_QUEUE, () => call(native));
  }

  /** Adds flows, to any queues. */
  addFlows(now: number, flows: NativeFlows): Promise<NativeAddedFlows> {
    return this.startingParents((native) => native.addFlows(now, flows));
  }

  /** Waits for commands under way, as long as the server answers some, then closes. Commands given later reject. */
  async close(): Promise<void> {
    const refusal = this.refuse();
    const silence = new Silence(() => this.unanswered);
    await this.closeUnless(silence.fell, refusal);
    silence.stop();
  }

  /**
   * As {@link close}, with a limit to all the waiting, whatever is answered meanwhile. A second call returns the promise of the first.
   * Source: BullMQ 6.7.0 `RedisConnection#disconnect`, and ioredis's `disconnectTimeout`.
   */
  disconnect(): Promise<void> {
    return (this.disconnecting ??= this.disconnectSoon());
  }

  private async disconnectSoon(): Promise<void> {
    const refusal = this.refuse();
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<false>((resolve) => (timer = setTimeout(resolve, PATIENCE_MS, false)));
    await this.closeUnless(tooLate, refusal);
    clearTimeout(timer);
    // who closes has asked for it
    if (!this.closing) this.emit('ioredis:close');
  }

  /** Sends what was called so far, and takes no more. */
  private refuse(): Error {
    for (const guest of this.guests) guest.refuse();
    this.unfollow?.();
    if (!this.ended) {
      this.producer.flush();
      this.logRows.flush();
    }
    return (this.ended ??= new ConnectionClosedError());
  }

  private async closeUnless(tooLate: Promise<false>, refusal: Error): Promise<void> {
    const isClosed = await Promise.race([this.closeEngine().then(() => true), tooLate]);
    this.readiness.stop();
    if (!isClosed) this.cut();
    this.abandon(refusal);
  }

  private async closeEngine(): Promise<void> {
    // The engine waits for calls only once it has connected.
    if (this.unanswered > 0) await this.readiness.news;
    this.readiness.stop();
    // their calls go by this connection
    await Promise.all(this.guests.map((guest) => guest.closeEngine()));
    await this.opened?.close();
    // its promise and the answers come by two ways, which keep no order
    if (this.opened && this.unanswered > 0) this.receive(this.opened.untold());
  }

  private get unanswered(): number {
    // an add that the engine has answered may not be known here yet
    const own = this.producer.unanswered + (this.opened?.unanswered() ?? 0);
    return this.guests.reduce((sum, guest) => sum + guest.unanswered, own);
  }

  /** Closes at once; commands under way reject. */
  private end(error: Error): void {
    this.readiness.stop();
    for (const commands of [this, ...this.guests]) commands.ended ??= error;
    this.cut();
    this.abandon(error);
  }

  private cut(): void {
    for (const guest of this.guests) guest.cut();
    this.opened?.disconnect();
  }

  private abandon(error: Error): void {
    for (const guest of this.guests) guest.abandon(error);
    this.producer.abandon(error);
  }
}
