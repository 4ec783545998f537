// bull-board over a queue of `chasquimq/v5`, which it shows as one of BullMQ 5.
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { expect, it } from 'vitest';
import * as v5 from '../../src/v5/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';

const stage = useStage(chasquimq);

it('takes it for one of BullMQ 5, with jobs that are paused', async () => {
  const queue = stage.keep(new v5.Queue(stage.name(), { connection: { ...connection } }));
  await queue.pause();
  await queue.add('x', {});
  const board = new BullMQAdapter(queue as never);
  expect(board.getJobStatuses()).toContain('paused');
  expect(await board.getJobCounts()).toMatchObject({ waiting: 0, paused: 1 });
  expect((await board.getJobs(['paused'], 0, 9)).map(({ name }: { name?: string }) => name)).toEqual(['x']);
  expect(await board.getRedisInfo()).toContain('redis_version');
});
