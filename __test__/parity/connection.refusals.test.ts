// Pins what is told of a server that refuses to be read.
import { afterEach, describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: connection.refusals', ({ lib }) => {
  const own = useOwnServer();
  const stage = useStage(lib);

  describe('of a read', () => {
    afterEach(() => own.redis.acl('DELUSER', 'blind'));

    it.each(['0-0', '$'])('is told by QueueEvents every 5 seconds, which then read from %s', async (lastEventId) => {
      const rights = ['reset', 'on', '>blind', '~*', '&*', '+@all'];
      await own.redis.acl('SETUSER', 'blind', ...rights, '-xread', '-xrevrange');
      const connection = { ...own.connection, username: 'blind', password: 'blind' };
      const events = stage.events({ connection, lastEventId });
      const log = new EventLog(events, ['error', 'added']);
      const [error] = await log.get<[Error]>('error');
      const since = performance.now();
      expect(error.message).toMatch(/^NOPERM/);
      await log.get('error', 2, 60_000);
      expect(performance.now() - since).toBeGreaterThan(4_000);
      await own.redis.acl('SETUSER', 'blind', '+@all');
      if (lastEventId === '0-0') {
        const queue = stage.queue({ connection: own.connection });
        await queue.add('job', {});
        await log.get('added', 1, 60_000);
        expect(log.all('error')).toHaveLength(2);
      }
      await events.close();
      stage.takeErrors();
    });
  });
});
