import { COMMANDS } from '../connection/members.js';
import type { EventEmitter } from 'node:events';
import type { JobQueue } from './minimal-queue.js';
import { callAbout } from './open-calls.js';

/** What the event `completed` gives. The result is of any type. */
type EndedArgs = { jobId: string; returnvalue: never; prev?: string };

/** What tells of jobs that end: a `QueueEvents`. */
export interface JobEvents {
  waitUntilReady(): Promise<void>;
  on(event: 'completed', listener: (args: EndedArgs, id: string) => void): this;
}

/**
 * Settles when a job has ended: with its return value, or with an error whose message is its failed reason.
 * The job's state is read once the events flow, so an end between the two is not missed. Of a job that is gone the engine
 * looks into the event log: this one's events may have been read before anyone listened for them.
 * Source: BullMQ 6.7.0 `Job#waitUntilFinished`.
 */
export async function waitUntilFinished<R>(
  queue: JobQueue,
  id: string,
  name: string,
  queueEvents: JobEvents,
  ttl?: number,
): Promise<R> {
  await queue.waitUntilReady();
  // Events of one job are named after it, which the listener types of QueueEvents do not cover.
  const events = queueEvents as unknown as EventEmitter;
  let stop = (): void => {};
  try {
    return await new Promise<R>((resolve, reject) => {
      const timer = ttl
        ? setTimeout(() => {
            const text = `Job wait ${name} timed out before finishing, no finish notification arrived after ${ttl}ms (id=${id})`;
            reject(new Error(text));
          }, ttl)
        : undefined;
      const onCompleted = ({ returnvalue }: { returnvalue: R }): void => resolve(returnvalue);
      const onFailed = ({ failedReason }: { failedReason: string }): void => reject(new Error(failedReason));
      const onClosing = (message: string): void => reject(new Error(message));

      events.on(`completed:${id}`, onCompleted);
      events.on(`failed:${id}`, onFailed);
      // Any number of jobs may be waited for, and each listens here: that is no leak to warn of.
      allowListeners(queue, +1);
      queue.on('closing', onClosing);
      stop = () => {
        clearTimeout(timer);
        events.removeListener(`completed:${id}`, onCompleted);
        events.removeListener(`failed:${id}`, onFailed);
        queue.removeListener('closing', onClosing);
        allowListeners(queue, -1);
      };
      settleIfFinished<R>(queue, id, queueEvents).then((end) => end && resolve(end.value), reject);
    });
  } finally {
    stop();
  }
}

/** The value of a job that has completed; undefined while it has not ended. Rejects for one that has failed. */
async function settleIfFinished<R>(
  queue: JobQueue,
  id: string,
  queueEvents: JobEvents,
): Promise<{ value: R } | undefined> {
  await queueEvents.waitUntilReady();
  const [status, text] = await callAbout(queue, id, queue[COMMANDS].native.isFinished(id));
  if (status === 0) return undefined;
  if (status === 1) return { value: (text ? JSON.parse(text) : null) as R };
  throw new Error(status === 2 ? text : `Missing key for job ${queue.toKey(id)}. isFinished`);
}

function allowListeners(queue: JobQueue, change: number): void {
  const emitter = queue as { getMaxListeners?(): number; setMaxListeners?(count: number): void };
  const limit = emitter.getMaxListeners?.();
  // 0 means no limit.
  if (limit) emitter.setMaxListeners?.(limit + change);
}
