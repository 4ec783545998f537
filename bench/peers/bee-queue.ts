import type { JobData, JobLibrary, JobLike, Processor } from '../adapters/library.js';
import { loadPackage } from './packages.js';
import { libraryOf } from './peer.js';

/** Of its queues, what is used here. */
interface BeeQueue {
  on(event: 'error' | 'failed' | 'succeeded', listener: (first: never, second: never) => void): unknown;
  ready(): Promise<unknown>;
  createJob(data: JobData): { save(): Promise<{ readonly id: string }> };
  process(concurrency: number, handler: Processor): void;
  checkHealth(): Promise<Readonly<Record<'waiting' | 'active' | 'succeeded' | 'failed' | 'delayed', number>>>;
  close(): Promise<unknown>;
}
type Constructor = new (name: string, settings: object) => BeeQueue;

/** Where nobody listens from another process, it can do without events between them, and without keeping jobs in memory for these. */
const QUIET = { getEvents: false, sendEvents: false, storeJobs: false };

/** As it comes, and as it is fastest. */
export function loadBeeQueues(): JobLibrary[] {
  return [wayOf('bee-queue', {}), wayOf('bee-queue without events', QUIET)];
}

function wayOf(way: string, options: object): JobLibrary {
  const { exported: Queue, version } = loadPackage<Constructor>('bee-queue');
  return libraryOf(way, version, (name, { connection }, isWorker) => {
    const queue = new Queue(name, { redis: { ...connection }, isWorker, ...options });
    return {
      onError: (listener) => void queue.on('error', listener),
      ready: () => queue.ready(),
      add: async (data) => (await queue.createJob(data).save()).id,
      async counts() {
        const { succeeded, ...others } = await queue.checkHealth();
        return { ...others, completed: succeeded };
      },
      process: (concurrency, handler) => queue.process(concurrency, handler),
      onCompleted: (listener) => void queue.on('succeeded', ({ id }: JobLike) => listener(String(id))),
      onFailed: (listener) => void queue.on('failed', (_: JobLike, error: Error) => listener(error)),
      close: () => queue.close(),
    };
  });
}
