/** A peer behind the API that scenarios use, as far as those need it that it is measured by. */
import type {
  JobData,
  JobLibrary,
  JobLike,
  JobState,
  Processor,
  QueueLike,
  QueueSettings,
  WorkerLike,
  WorkerSettings,
} from '../adapters/library.js';

/** What an adapter makes of one of its library's queues. */
export interface PeerQueue {
  onError(listener: (error: Error) => void): void;
  ready(): Promise<unknown>;
  /** Resolves when the job is in Redis, with its id. */
  add(data: JobData): Promise<string>;
  counts(): Promise<Partial<Record<JobState, number>>>;
  /** Runs jobs until the queue is closed. */
  process(concurrency: number, handler: Processor): void;
  /** When the end of a job is in Redis. */
  onCompleted(listener: (id: string) => void): void;
  onFailed(listener: (error: Error) => void): void;
  close(): Promise<unknown>;
}

export type OpenPeer = (name: string, settings: QueueSettings | WorkerSettings, isWorker: boolean) => PeerQueue;

export function libraryOf(name: string, version: string, open: OpenPeer): JobLibrary {
  class Queue extends Opened implements Pick<QueueLike, 'add' | 'getJobCounts'> {
    constructor(queueName: string, settings: QueueSettings) {
      super(open(queueName, settings, false));
    }

    async add(_name: string, data: JobData): Promise<{ id: string }> {
      return { id: await this.peer.add(data) };
    }

    async getJobCounts(...states: JobState[]): Promise<Record<string, number>> {
      const counts = await this.peer.counts();
      return Object.fromEntries(states.map((state) => [state, counts[state] ?? 0]));
    }
  }

  class Worker extends Opened implements WorkerLike {
    constructor(
      queueName: string,
      private readonly processor: Processor,
      private readonly settings: WorkerSettings,
    ) {
      super(open(queueName, settings, true));
    }

    override on(event: string, listener: (...args: never[]) => void): this {
      if (event === 'completed') this.peer.onCompleted((id) => (listener as (job: JobLike) => void)({ id } as JobLike));
      if (event === 'failed') {
        const failed = listener as (job: undefined, error: Error) => void;
        this.peer.onFailed((error) => failed(undefined, error));
      }
      return super.on(event, listener);
    }

    async run(): Promise<void> {
      this.peer.process(this.settings.concurrency, this.processor);
    }
  }

  // what else there is in the API, no scenario asks of a peer
  return { name, version, address: name, Queue, Worker } as unknown as JobLibrary;
}

class Opened {
  constructor(protected readonly peer: PeerQueue) {}

  on(event: string, listener: (...args: never[]) => void): this {
    if (event === 'error') this.peer.onError(listener as (error: Error) => void);
    return this;
  }

  waitUntilReady(): Promise<unknown> {
    return this.peer.ready();
  }

  async close(): Promise<void> {
    await this.peer.close();
  }
}
