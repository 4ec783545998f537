/** The worker of a plan, in whichever process it is to be. */
import type { ConnectionOptions, Processor, Worker } from 'bullmq';
import { fileURLToPath } from 'node:url';
import type { Library } from '../support/libraries.js';
import type { Handlers } from './handler.js';
import type { WorkerPlan } from './program.js';
import { decode } from './values.js';

const PROCESSOR = fileURLToPath(new URL('./processors/scripted.mjs', import.meta.url));
/** No program lasts as long: which scan finds a job that nobody runs is a wanted difference. */
const LOCK_MS = 300_000;

export interface Base {
  readonly connection: ConnectionOptions;
  readonly prefix: string;
}

export function openWorker(lib: Library, plan: WorkerPlan, handlers: Handlers, base: Base): Worker {
  const strategy = plan.strategy?.map(decode) as number[] | undefined;
  return new lib.Worker(`q${plan.queue}`, processorOf(plan, handlers), {
    ...base,
    concurrency: plan.concurrency,
    useWorkerThreads: plan.kind === 'thread',
    workerForkOptions: { execArgv: [] },
    workerThreadsOptions: { execArgv: [] },
    drainDelay: 1,
    lockDuration: LOCK_MS,
    ...(strategy && {
      settings: { backoffStrategy: (made?: number) => strategy[Math.min(made ?? 1, strategy.length) - 1] },
    }),
    ...(decode(plan.opts ?? {}) as object),
  });
}

function processorOf({ kind }: WorkerPlan, handlers: Handlers): Processor | string | null {
  if (kind === 'manual') return null;
  if (kind === 'process' || kind === 'thread') return PROCESSOR;
  return (job, token, signal) => handlers.handle(job, token, signal);
}
