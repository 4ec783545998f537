// Pins wanted differences in job schedulers, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { describe, expect, it, vi } from 'vitest';
import type { JobSchedulerTemplateOptions, RepeatOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { sideOf } from '../support/sides.js';
import { useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, until } from '../support/waiting.js';

type Repeat = Omit<RepeatOptions, 'key'>;

describe.each(libraries)('$name: differences, schedulers', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);
  const told = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      (error: Error & { code?: number }) => error.code ?? error.name,
    );

  it.each<Repeat>([{ every: 0.5 }, { every: 1000, offset: -1 }])('scheduler-numbers: %o', async (repeat) => {
    const outcome = await told(stage.queue().upsertJobScheduler('s', repeat));
    expect(outcome === 'RangeError').toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('scheduler-numbers: a template with a priority of 1.5', async () => {
    const outcome = await told(stage.queue().upsertJobScheduler('s', { every: 60_000 }, { opts: { priority: 1.5 } }));
    expect(outcome).toBe(of({ bullmq: 'done', chasquimq: 'Error' }));
  });

  it('scheduler-job-just-made', async () => {
    const job = await stage.queue().upsertJobScheduler('s', { every: 60_000 });
    expect(job?.opts.jobId).toBe(of({ bullmq: 'repeat:s:undefined', chasquimq: job?.id }));
  });

  it('scheduler-template-parent', async () => {
    const queue = stage.queue();
    const opts = { parent: { id: '1', queue: queue.qualifiedName } } as JobSchedulerTemplateOptions;
    const outcome = await told(queue.upsertJobScheduler('s', { every: 60_000 }, { opts }));
    expect(outcome).toBe(of({ bullmq: 'done', chasquimq: 'NotSupportedError' }));
  });

  it('upsert-of-a-due-run', async () => {
    const now = Date.now;
    const queue = stage.queue();
    const repeat = { pattern: '0 0 * * *', tz: 'Etc/UTC' };
    const due = await queue.upsertJobScheduler('s', repeat);
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 86_400_000);
    const again = await queue.upsertJobScheduler('s', repeat);
    vi.restoreAllMocks();
    expect(again?.id === due?.id).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('next-run-not-computed', async () => {
    const queue = stage.queue({ settings: { repeatStrategy: () => Date.now() } });
    await queue.upsertJobScheduler('s', { pattern: 'mine' });
    const cause = new Error('no idea');
    const repeatStrategy = () => {
      throw cause;
    };
    const worker = stage.worker(async () => undefined, { settings: { repeatStrategy } });
    const errors: Error[] = [];
    worker.on('error', (error) => errors.push(error));
    await until('what is told of it', () => errors.some(({ message }) => message.startsWith('Failed to add')));
    expect(errors.includes(cause)).toBe(of({ bullmq: true, chasquimq: false }));
    await worker.close();
    stage.takeErrors();
  });

  it('telemetry-of-schedulers', async () => {
    const telemetry = new TestTelemetry();
    await stage.queue().upsertJobScheduler('s', { every: 60_000 });
    const worker = stage.worker(async () => undefined, { telemetry });
    await new EventLog(worker, ['completed']).get('completed');
    await until('its span', () => telemetry.spans.some((span) => span.name.startsWith('process')));
    // of the next job, which the worker adds
    expect(telemetry.spans.some((span) => span.name.startsWith('add '))).toBe(of({ bullmq: true, chasquimq: false }));
  });

  const now = new Date();
  /** The first of the month that is so many away, and its number. */
  const first = (months: number) => new Date(now.getFullYear(), now.getMonth() + months, 1);
  const numberOf = (months: number) => first(months).getMonth() + 1;
  const slotOf = (job: { id?: string } | undefined) => Number(job?.id?.split(':').at(-1));
  const yearly = { pattern: `0 0 1 ${numberOf(2)} *` };
  const inAYear = new Date(first(2)).setFullYear(first(2).getFullYear() + 1);

  it.each<[string, Repeat, number]>([
    ['the same pattern', yearly, inAYear],
    ['another one that has the same slot', { pattern: `0 0 1 ${numberOf(2)},${numberOf(5)} *` }, first(5).getTime()],
  ])('upsert-of-a-promoted-slot: with %s', async (_, repeat, behind) => {
    const queue = stage.queue();
    const gate = stage.gate();
    const job = await queue.upsertJobScheduler('s', yearly);
    await job?.promote();
    const worker = stage.worker(() => gate.opened);
    await new EventLog(worker, ['active']).get('active');
    await until('what follows', async () => (await queue.getDelayed()).length === 1);
    const again = await queue.upsertJobScheduler('s', repeat, { name: 'again' });
    expect(slotOf(again)).toBe(of({ bullmq: slotOf(job), chasquimq: behind }));
    const delayed = await queue.getDelayed();
    expect(delayed.map((each) => [each.id, each.name])).toEqual([[again?.id, 'again']]);
    expect((await queue.getActive()).length).toBe(1);
    expect(await queue.getJobScheduler('s')).toMatchObject({ name: 'again', next: slotOf(again) });
  });
});
