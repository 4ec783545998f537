/**
 * Rows of jobs' logs. Those of one tick travel to the engine together, in the order of the calls: a round trip and a
 * promise for each cost several times what the server does.
 */
import { rejectedWith } from '../native/native-error.js';
import { ReplyError } from '../errors/reply-error.js';
import type { NativeQueue } from '../native/types.js';

// Taken at load, so that a user's fake timers do not hold up rows.
const nextTick = process.nextTick.bind(process);

interface Batch {
  readonly ids: string[];
  readonly rows: string[];
  readonly keeps: number[];
  /** Settle what `add` gave. */
  readonly callers: ((count: number | Promise<never>) => void)[];
}

export class LogRows {
  private batch: Batch | undefined;
  /** The first batch is under way, which may load the script: those of later ticks wait, and do not overtake it. */
  private isFirst = false;
  private isBegun = false;

  /** @param native gives the connection; it throws when there is none */
  constructor(private readonly native: () => NativeQueue) {}

  /**
   * Adds a row with those of the same tick.
   * @param keep newest rows to keep; 0 keeps all. As in BullMQ what is no number of rows is told once the row is stored
   * @returns the number of rows now kept
   */
  add(id: string, row: string, keep: number): Promise<number> {
    return new Promise((resolve) => {
      const batch = (this.batch ??= this.begin());
      batch.ids.push(id);
      batch.rows.push(row);
      batch.keeps.push(Number.isSafeInteger(keep) ? keep : 0);
      batch.callers.push(Number.isSafeInteger(keep) ? resolve : refuse(resolve));
    });
  }

  private begin(): Batch {
    nextTick(() => {
      if (!this.isFirst) this.flush();
    });
    return { ids: [], rows: [], keeps: [], callers: [] };
  }

  /** Sends what was gathered, without waiting for the end of the tick. */
  flush(): void {
    const { batch } = this;
    if (!batch) return;
    this.batch = undefined;
    const isFirst = !this.isBegun;
    this.isBegun = true;
    this.isFirst ||= isFirst;
    void this.send(batch).finally(() => {
      if (!isFirst) return;
      this.isFirst = false;
      this.flush();
    });
  }

  private async send({ ids, rows, keeps, callers }: Batch): Promise<void> {
    try {
      const counts = await this.native().addLogs(ids, rows, Float64Array.from(keeps));
      counts.forEach((count, i) => callers[i](typeof count === 'number' ? count : rejectedWith(count)));
    } catch (error) {
      for (const settle of callers) settle(rejectedWith(error as Error));
    }
  }
}

/** How many rows to keep: 0 for all. */
export const rowsOf = (keepLogs: number | undefined): number => (keepLogs ? Number(keepLogs) : 0);

/** What the server says of such a number, unless there is something else to say. */
function refuse(settle: Batch['callers'][number]): Batch['callers'][number] {
  const refusal = new ReplyError('ERR value is not an integer or out of range');
  return (count) => settle(typeof count === 'number' ? rejectedWith(refusal) : count);
}
