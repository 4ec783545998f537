import type { JobData, JobLibrary, JobLike, JobState, Processor } from '../adapters/library.js';
import { loadPackage } from './packages.js';
import { libraryOf } from './peer.js';

/** Of its queues, what is used here. */
interface Bull {
  on(event: 'error' | 'failed' | 'completed', listener: (first: never, second: never) => void): unknown;
  isReady(): Promise<unknown>;
  add(data: JobData): Promise<{ readonly id: string | number }>;
  process(concurrency: number, handler: Processor): Promise<void>;
  getJobCounts(): Promise<Partial<Record<JobState, number>>>;
  close(): Promise<void>;
}
type Constructor = new (name: string, settings: object) => Bull;

export function loadBull(): JobLibrary {
  const { exported: Queue, version } = loadPackage<Constructor>('bull');
  return libraryOf('bull', version, (name, { connection }) => {
    const queue = new Queue(name, { redis: { ...connection } });
    const failures: ((error: Error) => void)[] = [];
    return {
      onError: (listener) => void queue.on('error', listener),
      ready: () => queue.isReady(),
      add: async (data) => String((await queue.add(data)).id),
      counts: () => queue.getJobCounts(),
      // its promise ends with the queue
      process: (concurrency, handler) =>
        void queue.process(concurrency, handler).catch((error: Error) => failures.forEach((fail) => fail(error))),
      onCompleted: (listener) => void queue.on('completed', ({ id }: JobLike) => listener(String(id))),
      onFailed(listener) {
        failures.push(listener);
        queue.on('failed', (_: JobLike, error: Error) => listener(error));
      },
      close: () => queue.close(),
    };
  });
}
