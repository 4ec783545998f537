/** Largest value of the job option `priority`. Source: BullMQ 6.7.0. */
export const PRIORITY_LIMIT = 2 ** 21 - 1;
