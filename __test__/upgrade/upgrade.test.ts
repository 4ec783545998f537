// A rolling deploy from this build to itself; `npm run upgrade` does it from another commit's build.
import { expect, it } from 'vitest';
import { connection } from '../support/redis.js';
import { roll } from './roll.js';

it('a rolling deploy loses no job, and completes none twice', async () => {
  const module = import.meta.resolve('chasquimq');
  const account = await roll({
    modules: [module, module],
    connection,
    queueName: `upgrade-${process.pid}`,
    rounds: 50,
  });
  expect(account).toEqual({ added: expect.any(Number) as number, lost: [], doubled: [], errors: [] });
  expect(account.added).toBeGreaterThan(4 * 50 * 10);
});
