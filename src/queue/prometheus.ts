/** A queue's figures in the text form of Prometheus. */
import type { NativeLatency, NativeTimes } from '../native/types.js';
import type { Metrics } from '../types/metrics.js';

export interface Figures {
  readonly counts: Record<string, number>;
  readonly completed: Metrics;
  readonly failed: Metrics;
  /** For how long the oldest job has waited, ms. */
  readonly oldest: number | null | undefined;
  /** None where workers do not measure. */
  readonly latency: NativeLatency | null | undefined;
}

/** @param shared labels that every line is given: the queue's first, then those of the caller */
export function prometheusText(shared: Record<string, string>, figures: Figures): string {
  const { queue, ...globals } = shared;
  const line = (metric: string, labels: Record<string, string>, value: number): string => {
    const all = Object.entries({ queue, ...labels, ...globals });
    return `${metric}{${all.map(([label, text]) => `${label}="${escapeLabel(text)}"`).join(', ')}} ${value}`;
  };
  const head = (name: string, help: string, type: string): string[] => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
  ];
  const total = (state: string, { meta }: Metrics): string[] => [
    ...head(`bullmq_job_${state}_total`, `Total number of ${state} jobs`, 'counter'),
    line(`bullmq_job_${state}_total`, {}, meta.count),
  ];
  const histogram = (name: string, help: string, { ends, counts, count, sum }: NativeTimes): string[] => [
    ...head(name, help, 'histogram'),
    ...ends.map((end, at) => line(`${name}_bucket`, { le: String(end / 1000) }, counts[at] ?? 0)),
    line(`${name}_bucket`, { le: '+Inf' }, count),
    line(`${name}_sum`, {}, sum / 1000),
    line(`${name}_count`, {}, count),
  ];
  const { counts, completed, failed, oldest, latency } = figures;
  const lines = [
    ...head('bullmq_job_count', 'Number of jobs in the queue by state', 'gauge'),
    ...Object.entries(counts).map(([state, count]) => line('bullmq_job_count', { state }, count)),
    ...total('completed', completed),
    ...total('failed', failed),
  ];
  if (latency) {
    lines.push(
      ...head('chasquimq_oldest_job_seconds', 'How long the oldest job that could start has waited', 'gauge'),
      line('chasquimq_oldest_job_seconds', {}, (oldest ?? 0) / 1000),
      ...head('chasquimq_jobs_added_total', 'Jobs that were added since workers measure', 'counter'),
      line('chasquimq_jobs_added_total', {}, latency.added),
      ...histogram('chasquimq_job_waiting_seconds', 'Time in line until a start', latency.waiting),
      ...histogram('chasquimq_job_running_seconds', 'Time of each run', latency.running),
      ...histogram('chasquimq_job_completion_seconds', 'Time until jobs ended for good', latency.completion),
    );
  }
  return lines.join('\n');
}

/** A label's text as Prometheus reads it. */
function escapeLabel(text: string | undefined): string {
  return String(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
