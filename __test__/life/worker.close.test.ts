// Closing a worker, at whatever moment, leaves no job active, loses none and runs none twice.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { sleep, until } from '../support/waiting.js';

const JOBS = 300;
const ROUNDS = 25;

describe('worker.close', () => {
  const stage = useStage(chasquimq);

  it.each([1, 5, 100])(
    'worker after worker at concurrency %i takes over where the last one closed',
    async (concurrency) => {
      const queue = stage.queue();
      const runs = new Map<string, number>();
      const ended = () => runs.size;
      const busy = new Set<string>();
      let fresh = 0;
      for (let round = 0; round < ROUNDS; round++) {
        await queue.addBulk(Array.from({ length: JOBS / ROUNDS }, () => ({ name: 'job', data: fresh++ })));
        const before = ended();
        const worker = stage.worker(
          async (job) => {
            busy.add(String(job.id));
            // Some handlers end within the tick, others a moment later.
            if ((job.data as number) % 3 === 0) await sleep(1);
            busy.delete(String(job.id));
            runs.set(String(job.id), (runs.get(String(job.id)) ?? 0) + 1);
          },
          { concurrency },
        );
        // A different moment each time: at once, once connected (its first jobs are then on their way), while jobs end.
        if (round % 4 === 1) await worker.waitUntilReady();
        if (round % 4 >= 2) await until('jobs to end', () => ended() >= before + (round % 4));
        await worker.close();
        expect([round, busy.size, await queue.getActiveCount()]).toEqual([round, 0, 0]);
        expect((await queue.getWaitingCount()) + ended()).toBe(fresh);
      }
      stage.worker(async (job) => void runs.set(String(job.id), (runs.get(String(job.id)) ?? 0) + 1), { concurrency });
      await until('the rest to complete', async () => (await queue.getCompletedCount()) === fresh);
      expect(runs.size).toBe(fresh);
      expect([...runs.values()].every((count) => count === 1)).toBe(true);
      const jobs = await queue.getCompleted();
      expect(
        jobs.filter(({ attemptsStarted, stalledCounter }) => attemptsStarted !== 1 || stalledCounter !== 0),
      ).toEqual([]);
    },
  );
});
