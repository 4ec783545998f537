/** What handlers did: the runs of each job, wherever its workers are. */
import type { Job } from 'bullmq';
import { sharedClock } from '../support/shared-clock.js';

/** A run of a job's handler, while it lasts. */
export interface Run {
  /** Which of the runs of its job it is, from 0. */
  readonly at: number;
  note(text: string): void;
  end(): void;
}

/** What becomes of one that is written down; `to` is when it ended, now by default. */
type Open = Pick<Run, 'note'> & { end(to?: number): void };

/** Where handlers write down what they do. */
export interface Book {
  begin(job: Job): Run;
}

/** Times are those of the clock that all processes share. */
interface Written {
  readonly name: string;
  /** Which process it is in; none: that of the program. */
  readonly by: string | undefined;
  readonly from: number;
  /** Undefined: it has not ended. */
  to: number | undefined;
  text: string;
}

/** What a handler sees of its job as it starts. */
export const seenAtStart = ({ attemptsMade, attemptsStarted, stalledCounter }: Job): string =>
  `made ${attemptsMade} started ${attemptsStarted} stalled ${stalledCounter}`;

export class Runs implements Book {
  running = 0;
  /** Goes up with each start and end. */
  heard = 0;
  /** Names of jobs in the order of their starts. */
  readonly order: string[] = [];
  readonly #runs = new Map<string, Written[]>();

  begin(job: Job): Run {
    const at = this.#runs.get(job.name)?.length ?? 0;
    return { at, ...this.write(job.name, seenAtStart(job)) };
  }

  /** Writes down one that has begun. */
  write(name: string, text: string, by?: string, from = sharedClock()): Open {
    const run: Written = { name, by, from, to: undefined, text };
    this.#runs.set(name, [...(this.#runs.get(name) ?? []), run]);
    this.order.push(name);
    this.running++;
    this.heard++;
    return {
      note: (more) => {
        run.text += `; ${more}`;
      },
      end: (to = sharedClock()) => {
        if (run.to !== undefined) return;
        run.to = to;
        this.running--;
        this.heard++;
      },
    };
  }

  /** The runs of a job as texts, in the order of their starts: what processes tell of them may come in another one. */
  of(name: string): string[] {
    return this.#inOrder(name).map(({ text }) => text);
  }

  /** When a job was started first. */
  startOf(name: string): number | undefined {
    return this.#inOrder(name)[0]?.from;
  }

  /** The runs in one process. */
  by(process: string): { key: string; from: number; to: number }[] {
    return [...this.#runs.values()].flatMap((runs) =>
      runs.flatMap(({ name, by, from, to = Infinity }) => (by === process ? [{ key: name, from, to }] : [])),
    );
  }

  #inOrder(name: string): Written[] {
    return [...(this.#runs.get(name) ?? [])].sort((one, other) => one.from - other.from);
  }
}
