// Pins what a processor that is a file may ask of its job: the answers, and what it is told without one.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const BY_NAME = fileURLToPath(new URL('./processors/by-name.cjs', import.meta.url));
/** A child is a process of its own, which takes a while to start. */
const START_MS = 60_000;

const QUESTIONS = [
  'getChildrenValues',
  'getIgnoredChildrenFailures',
  'getDependencies',
  'getDependenciesCount',
  'moveToWaitingChildren',
] as const;

const MODES = [
  ['child process', false],
  ['worker thread', true],
] as const;

describe.each(libraries)('$name: worker.sandbox.answers', ({ lib }) => {
  const stage = useStage(lib);

  describe.each(MODES)('in a %s', (_, useWorkerThreads) => {
    function sandbox(): { worker: Worker; log: EventLog } {
      const { connection } = stage.queue().opts;
      const worker = stage.watch(new lib.Worker(stage.queueName, BY_NAME, { connection, useWorkerThreads }));
      return { worker, log: new EventLog(worker, ['completed', 'failed']) };
    }

    /** Its job answers nothing it is asked. */
    function mute(worker: Worker): void {
      worker.on('active', (job) => {
        for (const question of QUESTIONS) job[question] = () => new Promise<never>(() => {});
      });
    }

    it('the values of its children, its dependencies and their numbers', async () => {
      const queueName = stage.name();
      const { log } = sandbox();
      const child = { name: 'double', queueName, data: { n: 4 } };
      await stage.flowProducer().add({ name: 'asks', queueName, data: QUESTIONS, children: [child] });
      const [, answers] = await log.get<[Job, unknown[]]>('completed', 2, START_MS);
      const key = stage.childKey(log.all<[Job]>('completed')[0][0].id);
      expect(answers).toEqual([
        { [key]: 8 },
        {},
        { processed: { [key]: 8 }, unprocessed: [], ignored: {}, failed: [] },
        { processed: 1, unprocessed: 0, ignored: 0, failed: 0 },
        false,
      ]);
    });

    it('an argument that is left open is left open', async () => {
      const { log } = sandbox();
      const { id } = await stage.queue().add('leavesOpen', { n: 1 });
      const [, answers] = await log.get<[Job, unknown[]]>('completed', 1, START_MS);
      expect(answers).toEqual([false, { processed: 0, unprocessed: 0, ignored: 0, failed: 0 }]);
      expect((await fetchJob(stage.queue(), id)).data).toEqual({});
    });

    it('an answer that comes while the processor computes, for longer than it waits', async () => {
      const { log } = sandbox();
      await stage.queue().add('asksAndComputes', 800);
      expect((await log.get<[Job, unknown]>('completed', 1, START_MS))[1]).toEqual({});
    });

    it('a question without an answer', async () => {
      const { worker, log } = sandbox();
      mute(worker);
      await stage.queue().add('asks', QUESTIONS);
      const [, answers] = await log.get<[Job, unknown[]]>('completed', 1, START_MS);
      expect(answers).toEqual(QUESTIONS.map((name) => ['Error', `TimeoutError: ${name} timed out in (500ms)`]));
    });

    it('fails the job that does not catch it', async () => {
      const { worker, log } = sandbox();
      mute(worker);
      await stage.queue().add('asksOne', 'getChildrenValues');
      const [job] = await log.get<[Job, Error]>('failed', 1, START_MS);
      const { failedReason, stacktrace } = await fetchJob(stage.queue(), job.id);
      expect(failedReason).toBe('TimeoutError: getChildrenValues timed out in (500ms)');
      expect(stacktrace?.[0]).toMatch(/^Error: TimeoutError: getChildrenValues timed out in \(500ms\)\n/);
    });
  });
});
