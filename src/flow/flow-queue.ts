import { COMMANDS } from '../connection/members.js';
import type { Commands } from '../connection/commands.js';
import type { KeyPrefixOptions, QueueBaseOptions } from '../options/queue.js';
import type { MinimalQueue } from '../job/minimal-queue.js';

/** The producer, as its queues see it. */
interface Owner {
  readonly closing: Promise<void> | undefined;
  emit(event: 'error', error: Error): boolean;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: string | symbol, listener: (...args: unknown[]) => void): unknown;
  waitUntilReady(): Promise<void>;
}

/** The queue of a flow's jobs, as those need it. Their commands go by the connection of the producer. */
export class FlowQueue implements MinimalQueue {
  readonly qualifiedName: string;
  readonly opts: Partial<QueueBaseOptions<unknown>> & KeyPrefixOptions;
  private opened: Commands | undefined = undefined;

  constructor(
    private readonly owner: Owner,
    readonly prefix: string,
    readonly name: string,
    private readonly open: () => Commands,
  ) {
    this.qualifiedName = `${prefix}:${name}`;
    this.opts = { prefix };
  }

  toKey = (type: string): string => `${this.qualifiedName}:${type}`;

  get closing(): Promise<void> | undefined {
    return this.owner.closing;
  }

  get [COMMANDS](): Commands {
    return (this.opened ??= this.open());
  }

  emit(event: string | symbol, ...args: unknown[]): boolean {
    return (this.owner.emit as (event: string | symbol, ...args: unknown[]) => boolean).call(
      this.owner,
      event,
      ...args,
    );
  }

  on(event: string | symbol, listener: (...args: unknown[]) => void): this {
    this.owner.on(event as 'error', listener);
    return this;
  }

  removeListener(event: string | symbol, listener: (...args: unknown[]) => void): this {
    this.owner.removeListener(event, listener);
    return this;
  }

  waitUntilReady(): Promise<void> {
    return this.owner.waitUntilReady();
  }
}
