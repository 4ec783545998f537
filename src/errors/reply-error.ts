/** A command that the server refused. */
export interface RefusedCommand {
  /** Its name, in small letters. */
  name: string;
  /** Its arguments; those of a function or script end with the queue's key. */
  args: string[];
}

/**
 * What the server answered instead of a result: `NOPERM ...`, `OOM ...`.
 * Source: ioredis's `ReplyError`, which BullMQ 6.7.0 passes on.
 */
export class ReplyError extends Error {
  /** What the server was asked, where that is known. */
  declare command?: RefusedCommand;

  constructor(message: string, command?: RefusedCommand) {
    super(message);
    if (command) this.command = command;
  }
}

// as ioredis's, it is no field of each error
Object.defineProperty(ReplyError.prototype, 'name', { value: 'ReplyError', configurable: true, writable: true });
