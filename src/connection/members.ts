/**
 * Members of queues, workers, events and flow producers that other modules use. Their names are symbols: programs inherit from these classes, and call
 * members of their own what they like.
 */

/** The connection that carries the commands of a queue's jobs. */
export const COMMANDS: unique symbol = Symbol('commands');
/** What the engine needs to find the queue. */
export const TARGET: unique symbol = Symbol('target');
/** What the `connection` option says. */
export const CONNECTION: unique symbol = Symbol('connection');
/** What every `close()` ends with. */
export const CLOSE: unique symbol = Symbol('close');
