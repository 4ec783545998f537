/**
 * Members of a job that are decoded when they are first read. On the prototype they cost a job nothing, and whatever goes
 * by own properties (`Object.assign`, a spread, templates that read no others) does not see them. A job that leaves the
 * hot path bears them itself: still decoded when read.
 */
const MEMBERS = ['data', 'opts', 'returnvalue', 'stacktrace', 'queueQualifiedName'];

/** Shared by all jobs, which then have one shape. */
let descriptors: [string, PropertyDescriptor][] | undefined;

/** Makes the lazily decoded members own ones, as they are of BullMQ's jobs. */
export function bearMembers(job: object, prototype: object): void {
  descriptors ??= MEMBERS.map((name) => [
    name,
    { ...Object.getOwnPropertyDescriptor(prototype, name), enumerable: true },
  ]);
  for (const [name, descriptor] of descriptors) Object.defineProperty(job, name, descriptor);
}
