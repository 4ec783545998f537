/**
 * Members of queues, workers, events and flow producers that other modules use. Their names are symbols: programs inherit from these classes, and call
 * members of their own what they like. They are the same in all copies of the library that a process has loaded: a queue of one may have a job of another.
 */

/** The connection that carries the commands of a queue's jobs. */
export const COMMANDS: unique symbol = Symbol.for('chasquimq.commands');
/** What the engine needs to find the queue. */
export const TARGET: unique symbol = Symbol.for('chasquimq.target');
/** What the `connection` option says. */
export const CONNECTION: unique symbol = Symbol.for('chasquimq.connection');
/** What every `close()` ends with. */
export const CLOSE: unique symbol = Symbol.for('chasquimq.close');
