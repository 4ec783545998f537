/** What the server tells of jobs that have ended: by its event log, and by what it keeps. */
import type { EventEmitter } from 'node:events';
import { QueueEvents } from '../../src/index.js';
import type { Queue, RedisOptions } from '../../src/index.js';
import type { Kept } from './account.js';
import type { Moved, Recorded } from './jobs.js';
import { shortened } from './ledger.js';

const PAGE = 1_000;
/** What tells where a job is from now on. */
const MOVES = ['active', 'waiting', 'delayed', 'waiting-children', 'stalled', 'completed', 'failed', 'removed'];

/** A QueueEvents from the beginning of the log on. */
export class Listener {
  readonly log: Recorded[] = [];
  readonly moves: Moved[] = [];
  atEnd = false;
  readonly #events: QueueEvents;

  constructor(queueName: string, connection: RedisOptions) {
    this.#events = new QueueEvents(queueName, { connection, lastEventId: '0-0' });
    this.#events.on('error', () => undefined);
    this.#events.on('completed', ({ jobId, returnvalue }) =>
      this.log.push({ id: jobId, state: 'completed', text: shortened(String(returnvalue)) }),
    );
    this.#events.on('failed', ({ jobId, failedReason }) =>
      this.log.push({ id: jobId, state: 'failed', text: failedReason }),
    );
    for (const to of MOVES)
      (this.#events as EventEmitter).on(to, ({ jobId: id }: { jobId: string }) => this.moves.push({ id, to }));
    (this.#events as EventEmitter).on('end-of-run', () => (this.atEnd = true));
  }

  async close(): Promise<void> {
    await this.#events.close();
  }
}

/** All that ended and is kept. */
export async function keptJobs(queue: Queue): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const state of ['completed', 'failed'] as const) {
    for (let from = 0; ; from += PAGE) {
      const jobs = await queue.getJobs([state], from, from + PAGE - 1);
      for (const { id = '', data, returnvalue, failedReason = '', attemptsMade } of jobs) {
        const key = (data as { key?: string }).key ?? id;
        const text = state === 'completed' ? shortened(String(returnvalue)) : failedReason;
        kept.push({ id, key, state, text, attemptsMade });
      }
      if (jobs.length < PAGE) break;
    }
  }
  return kept;
}
