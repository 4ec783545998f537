/**
 * Written to the queue's meta and returned by `queue.getVersion()`: the BullMQ release whose behaviour is mirrored, and
 * who mirrors it. Tools such as bull-board recognise a queue by the leading `bullmq`.
 */
export const QUEUE_VERSION = 'bullmq:6.7.0-chasquimq';
