/** Says once a connection, in BullMQ's words, that the server may delete jobs. */
export function warnOfEviction(policy: string): void {
  console.warn(`IMPORTANT! Eviction policy is ${policy}. It should be "noeviction"`);
}
