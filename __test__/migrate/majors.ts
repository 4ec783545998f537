import type { Library } from '../support/libraries.js';

export interface Major {
  readonly name: string;
  readonly lib: Library;
}

/** Each major of BullMQ whose queues move. */
export const MAJORS: readonly Major[] = [
  { name: 'BullMQ 6', lib: await import('bullmq') },
  { name: 'BullMQ 5', lib: (await import('bullmq5')) as unknown as Library },
];
