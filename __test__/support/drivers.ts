import * as ioredis5 from 'ioredis';
import * as ioredis6 from 'ioredis6';

export interface Driver {
  readonly driver: string;
  readonly Redis: typeof ioredis5.Redis;
  readonly Cluster: typeof ioredis5.Cluster;
}

/** The majors of ioredis whose clients users pass on, for `describe.each(drivers)('$driver: ...')`. */
export const drivers: readonly Driver[] = [
  { driver: 'ioredis 5', Redis: ioredis5.Redis, Cluster: ioredis5.Cluster },
  // the tests use what both majors have; their types differ in what replies look like
  { driver: 'ioredis 6', ...(ioredis6 as unknown as Pick<typeof ioredis5, 'Redis' | 'Cluster'>) },
];
