import { it } from 'vitest';
import type * as BullMQ5 from 'bullmq5';
import { IDIOMS, type IdiomId } from './idioms.js';
import type { Library } from '../support/libraries.js';
import { useStage, type Stage } from '../support/stage.js';

/** The exports these tests use. Both packages are held to the types of BullMQ 5. */
export type Library5 = Pick<
  typeof BullMQ5,
  'FlowProducer' | 'Job' | 'PRIORITY_LIMIT' | 'Queue' | 'QueueEvents' | 'Repeat' | 'UnrecoverableError' | 'Worker'
>;

export interface NamedLibrary5 {
  readonly name: 'bullmq5' | 'chasquimq/v5';
  readonly lib: Library5;
}

// Held in variables so that neither tsc nor the bundler looks into them.
const sources = {
  bullmq5: 'bullmq5',
  'chasquimq/v5': new URL('../../src/v5/index.ts', import.meta.url).href,
};

/** For `describe.each(libraries)('$name: ...')`; `PARITY=bullmq` or `PARITY=chasquimq` restricts a run to one side. */
export const libraries: readonly NamedLibrary5[] = await Promise.all(
  (Object.keys(sources) as (keyof typeof sources)[])
    .filter((name) => name.startsWith(process.env.PARITY ?? ''))
    .map(async (name) => ({ name, lib: (await import(sources[name])) as Library5 })),
);

/** A stage whose objects are told by the types of BullMQ 5. */
export interface Stage5 {
  readonly base: Stage;
  queue(opts?: Partial<BullMQ5.QueueOptions>, part?: string): BullMQ5.Queue;
  worker(processor: BullMQ5.Processor | null, opts?: Partial<BullMQ5.WorkerOptions>, part?: string): BullMQ5.Worker;
  events(opts?: Partial<BullMQ5.QueueEventsOptions>, part?: string): BullMQ5.QueueEvents;
  flowProducer(): BullMQ5.FlowProducer;
}

export function useStage5(lib: Library5): Stage5 {
  const base = useStage(lib as unknown as Library);
  return {
    base,
    queue: (opts, part) => base.queue(opts as object, part) as unknown as BullMQ5.Queue,
    worker: (processor, opts, part) =>
      base.worker(processor as never, opts as object, part) as unknown as BullMQ5.Worker,
    events: (opts, part) => base.events(opts as object, part) as unknown as BullMQ5.QueueEvents,
    flowProducer: () => base.flowProducer() as unknown as BullMQ5.FlowProducer,
  };
}

/** The test of an idiom. */
export function idiom(id: IdiomId, body: () => Promise<void>): void {
  const { code, does } = IDIOMS.find((each) => each.id === id)!;
  it(`${id}: ${code}: ${does}`, body);
}
