import type * as BullMQ from 'bullmq';

/** The exports the parity suite uses. Both packages are held to BullMQ's own types. */
export type Library = Pick<
  typeof BullMQ,
  | 'Queue'
  | 'Worker'
  | 'Job'
  | 'JobScheduler'
  | 'Backoffs'
  | 'QueueEvents'
  | 'QueueEventsProducer'
  | 'FlowProducer'
  | 'UnrecoverableError'
  | 'DelayedError'
  | 'WaitingError'
  | 'WaitingChildrenError'
  | 'RateLimitError'
  | 'delay'
  | 'removeAllQueueData'
>;

export interface NamedLibrary {
  readonly name: string;
  readonly lib: Library;
}

const sources: Record<string, () => Promise<unknown>> = {
  bullmq: () => import('bullmq'),
  chasquimq: () => import('../../src/index.js'),
};

/**
 * The libraries every parity test runs against, for `describe.each(libraries)('$name: ...')`.
 * `PARITY=bullmq` or `PARITY=chasquimq` restricts a run to one side; otherwise a side that cannot be loaded fails the run.
 */
export const libraries: readonly NamedLibrary[] = await Promise.all(sidesToRun().map(load));

function sidesToRun(): string[] {
  const only = process.env.PARITY;
  if (!only) return Object.keys(sources);
  if (!(only in sources)) throw new Error(`PARITY must be one of ${Object.keys(sources).join(', ')}, not ${only}`);
  return [only];
}

async function load(name: string): Promise<NamedLibrary> {
  const lib = (await sources[name]?.()) as Library;
  return { name, lib };
}
