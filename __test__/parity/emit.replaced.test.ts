// Pins that who puts an `emit` of its own in the place of a class's hears all events, though nobody listens for them.
import type { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const ENDS = new Set<unknown>(['active', 'progress', 'completed', 'failed', 'drained']);

describe.each(libraries)('$name: an emit that is replaced', ({ lib }) => {
  const stage = useStage(lib);

  it('of a worker is called with the events of jobs', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.updateProgress(5);
      if (job.name === 'bad') throw new Error('no');
    });
    const emit = vi.spyOn(worker, 'emit');
    const told = () => emit.mock.calls.map(([event]) => event as unknown).filter((event) => ENDS.has(event));
    await queue.add('good', {});
    await until('the first', () => told().includes('completed'));
    await queue.add('bad', {});
    await until('the second', () => told().includes('failed'));
    expect(told().filter((event) => event !== 'drained')).toEqual([
      'active',
      'progress',
      'completed',
      'active',
      'progress',
      'failed',
    ]);
  });

  it('of a queue is called with waiting', async () => {
    const queue = stage.queue();
    const emit = vi.spyOn(queue, 'emit');
    await queue.add('job', {});
    expect(emit.mock.calls.map(([event]) => event as unknown)).toContain('waiting');
  });

  it.each(['Queue', 'QueueEvents', 'Worker'] as const)(
    'of the class %s is called for all of its objects',
    async (name) => {
      const emit = vi.spyOn(lib[name].prototype as EventEmitter, 'emit');
      try {
        const queue = stage.queue();
        stage.worker(async () => {});
        const completed = new EventLog(stage.events(), ['completed']);
        await queue.add('job', {});
        await completed.get('completed');
        const told = { Queue: 'waiting', QueueEvents: 'active', Worker: 'completed' }[name];
        await until(told, () => emit.mock.calls.some(([event]) => event === told));
      } finally {
        emit.mockRestore();
      }
    },
  );
});
