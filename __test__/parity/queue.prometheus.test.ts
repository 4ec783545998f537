// Pins Queue#exportPrometheusMetrics and #recordJobCountsMetric.
import { describe, expect, it } from 'vitest';
import type { QueueOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const STATES = ['active', 'completed', 'delayed', 'failed', 'prioritized', 'waiting', 'waiting-children'];

describe.each(libraries)('$name: queue.exportPrometheusMetrics', ({ lib }) => {
  const stage = useStage(lib);

  function expected(labels: string, counts: Record<string, number> = {}, completed = 0, failed = 0): string {
    const queue = `queue="${stage.queueName}"`;
    return [
      '# HELP bullmq_job_count Number of jobs in the queue by state',
      '# TYPE bullmq_job_count gauge',
      ...STATES.map((state) => `bullmq_job_count{${queue}, state="${state}"${labels}} ${counts[state] ?? 0}`),
      '# HELP bullmq_job_completed_total Total number of completed jobs',
      '# TYPE bullmq_job_completed_total counter',
      `bullmq_job_completed_total{${queue}${labels}} ${completed}`,
      '# HELP bullmq_job_failed_total Total number of failed jobs',
      '# TYPE bullmq_job_failed_total counter',
      `bullmq_job_failed_total{${queue}${labels}} ${failed}`,
    ].join('\n');
  }

  it('has a line for each state and for each end', async () => {
    expect(await stage.queue().exportPrometheusMetrics()).toBe(expected(''));
  });

  it('gives every line the labels of the caller, escaped', async () => {
    const text = await stage.queue().exportPrometheusMetrics({ env: 'a"b\nc\\d', zone: 'eu' });
    expect(text).toBe(expected(', env="a\\"b\\nc\\\\d", zone="eu"'));
  });

  it('counts jobs in their states, and those that ended where workers count', async () => {
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'fails') throw new Error('no');
      },
      { metrics: { maxDataPoints: 10 } },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(['passes', 'passes', 'passes', 'fails'].map((name) => ({ name, data: {} })));
    await log.when('the end of all', () => log.entries.length === 4);
    await worker.close();
    await queue.clean(0, 1);
    await queue.add('waits', {});
    await queue.add('sleeps', {}, { delay: 60_000 });
    const counts = { completed: 2, failed: 1, waiting: 1, delayed: 1 };
    expect(await queue.exportPrometheusMetrics()).toBe(expected('', counts, 3, 1));
  });
});

describe.each(libraries)('$name: queue.recordJobCountsMetric', ({ lib }) => {
  const stage = useStage(lib);

  it('without telemetry gives the counts', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await queue.recordJobCountsMetric('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
    expect(Object.keys(await queue.recordJobCountsMetric())).toEqual(STATES);
  });

  it('records a gauge for each state with the meter of the telemetry', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const recorded: unknown[] = [];
    const meter = {
      createGauge: (...args: unknown[]) => {
        recorded.push(args);
        return { record: (...values: unknown[]) => recorded.push(values) };
      },
    };
    // only the meter: what else telemetry is made of is not asked for
    queue.opts.telemetry = { meter } as unknown as QueueOptions['telemetry'];
    expect(await queue.recordJobCountsMetric('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
    delete queue.opts.telemetry;
    const labels = (state: string) => ({ 'bullmq.queue.name': stage.queueName, 'bullmq.queue.jobs.state': state });
    expect(recorded).toEqual([
      ['bullmq.queue.jobs', { description: 'Number of jobs in the queue by state', unit: '{jobs}' }],
      [1, labels('waiting')],
      [0, labels('active')],
    ]);
  });
});
