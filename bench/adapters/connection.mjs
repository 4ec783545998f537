// How both libraries are given a server. BullMQ takes a Cluster as a client of ioredis only, and so does the other for the bench's sake. Plain JavaScript, for
// workers that are processes of their own.
import { Cluster } from 'ioredis';

export function connectionTo({ nodes, ...settings }) {
  if (!nodes) return settings;
  // who reads the options alone leaves it unconnected
  const client = new Cluster(nodes, { ...settings, lazyConnect: true, redisOptions: { maxRetriesPerRequest: null } });
  client.on('error', () => undefined); // queues and workers tell of theirs
  return client;
}
