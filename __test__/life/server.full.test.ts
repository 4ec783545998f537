// A server with as many clients as it may have says so to whoever comes, and hangs up before it is asked. ioredis tells it where the system
// hands these words over before it refuses the first command; here they are told whatever comes first.
import { afterEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog } from '../support/waiting.js';

describe('server.full', () => {
  const own = useOwnServer();
  const stage = useStage(chasquimq);
  afterEach(() => own.redis.config('SET', 'maxclients', '100'));

  it.each([
    ['a queue', () => stage.queue({ connection: own.connection })],
    ['a queue by a unix socket', () => stage.queue({ connection: { path: own.server.path } })],
    ['a queue with a name', () => stage.queue({ connection: { ...own.connection, connectionName: 'name' } })],
    ['a queue with a database', () => stage.queue({ connection: { ...own.connection, db: 1 } })],
    ['a queue with a password', () => stage.queue({ connection: { ...own.connection, password: 'not needed' } })],
    ['a queue of a cluster', () => stage.queue({ connection: { nodes: [own.connection] } })],
    ['a flow producer', () => stage.flowProducer({ connection: own.connection })],
    ['QueueEvents', () => stage.events({ connection: own.connection })],
    ['a worker', () => stage.worker(async () => undefined, { connection: own.connection })],
  ])('%s tells its words, and nothing else', async (_, make) => {
    await own.redis.config('SET', 'maxclients', '1');
    const refused = make();
    const log = new EventLog(refused, ['error']);
    await log.get('error', 3);
    const told = log.all<[Error]>('error').map(([{ name, message }]) => `${name}: ${message}`);
    expect(new Set(told)).toEqual(new Set(['ReplyError: ERR max number of clients reached']));
    await own.redis.config('SET', 'maxclients', '100');
    await refused.close();
    stage.takeErrors();
  });

  it('takes them again once there is room', async () => {
    await own.redis.config('SET', 'maxclients', '1');
    const queue = stage.queue({ connection: own.connection });
    const adding = queue.add('job', {});
    await new EventLog(queue, ['error']).get('error');
    await own.redis.config('SET', 'maxclients', '100');
    expect((await adding).id).toBe('1');
    stage.takeErrors();
  });
});
