// What docs and examples tell Prometheus, Grafana, KEDA and Kubernetes to ask for is exported, and the queries of autoscalers give what they are to.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { ROOT } from '../support/registry.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const textOf = (file: string): string => readFileSync(join(ROOT, 'examples/observability', file), 'utf8');
/** Names of metrics in a query, and its labels. */
const metricsIn = (query: string): string[] => query.match(/\b(?:bullmq|chasquimq)_\w+/g) ?? [];
const labelsIn = (query: string): string[] =>
  [...query.matchAll(/(\w+)[!=]~?"|by \(([^)]*)\)/g)].flatMap(([, label, by]) => label ?? by?.split(', ') ?? []);

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

function samplesOf(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)\{(.*)\} (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, is]) => [label, is])),
    value: Number(value),
  }));
}

/** What Prometheus would answer to `max(metric{label="", label=~""})` or the same with `sum`. */
function answer(query: string, samples: Sample[]): number {
  const [, how, metric, matchers = ''] = /^(max|sum)\((\w+)\{(.*)\}\)$/.exec(query) ?? [];
  expect(how, query).toBeDefined();
  const asked = [...matchers.matchAll(/(\w+)=(~?)"([^"]*)"/g)];
  const found = samples.filter(
    ({ name, labels }) =>
      name === metric &&
      asked.every(([, label = '', like, is = '']) =>
        like ? new RegExp(`^(${is})$`).test(labels[label] ?? '') : labels[label] === is,
      ),
  );
  expect(found, query).not.toEqual([]);
  const values = found.map(({ value }) => value);
  return how === 'max' ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
}

describe('what examples ask of Prometheus', () => {
  const stage = useStage(chasquimq);

  /** The figures of a queue of which two jobs have ended; two wait, the first for a minute. */
  async function exported(): Promise<Sample[]> {
    const queue = stage.queue();
    const metrics = { maxDataPoints: 5, latency: true };
    const worker = stage.worker(async ({ name }) => name === 'bad' && Promise.reject(new Error('no')), { metrics });
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(['good', 'bad'].map((name) => ({ name, data: 0 })));
    await log.when('both ends', () => log.entries.length === 2);
    await worker.close();
    await queue.add('old', 0, { timestamp: Date.now() - 60_000, priority: 1 });
    await queue.add('new', 0);
    return samplesOf(await queue.exportPrometheusMetrics());
  }

  const dashboard = JSON.parse(textOf('grafana-dashboard.json')) as {
    panels: { title: string; targets: { expr: string }[] }[];
    templating: { list: { query: string | { query: string } }[] };
  };
  const ofGrafana = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const rules = textOf('alerts.yml').split('- alert: ').slice(1);
  const ofRules = rules.map((rule) => /expr: (?:>-\n)?([^]*?)\n {8}for:/.exec(rule)?.[1] ?? '');
  const ofKeda = [...textOf('keda.yml').matchAll(/query: (.*)/g)].map(([, query = '']) => query);
  const ofAdapter = textOf('autoscaler.yml').match(/(?:seriesQuery|metricsQuery): .*/g) ?? [];

  it('is exported, with its labels', async () => {
    const samples = await exported();
    const names = new Set(samples.map(({ name }) => name));
    const labels = new Set(samples.flatMap(({ labels: of }) => Object.keys(of)));
    const variables = dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query));
    for (const query of [...ofGrafana, ...variables.slice(1), ...ofRules, ...ofKeda, ...ofAdapter]) {
      expect(metricsIn(query).length, query).toBeGreaterThan(0);
      expect(metricsIn(query).filter((name) => !names.has(name))).toEqual([]);
      expect(labelsIn(query).filter((label) => !labels.has(label))).toEqual([]);
    }
  });

  it('is a dashboard of which each panel asks, and rules that each say when and why', () => {
    expect(dashboard.panels.length).toBe(8);
    expect(dashboard.panels.filter(({ title, targets }) => !title || targets.length === 0)).toEqual([]);
    expect(rules.length).toBe(5);
    for (const rule of rules)
      expect(rule).toMatch(
        /^\w+\n[^]*expr: [^]*for: \d+m\n[^]*severity: (page|warning)[^]*summary: .+\n +description: .+/,
      );
  });

  it('scales workers by the oldest job, and by the jobs that wait', async () => {
    const samples = await exported();
    const [oldest = NaN, backlog = NaN] = ofKeda.map((query) =>
      answer(query.replace('"mail"', `"${stage.queueName}"`), samples),
    );
    expect(oldest).toBeGreaterThanOrEqual(60);
    expect(oldest).toBeLessThan(90);
    expect(backlog).toBe(2);
    const ofPods = /metricsQuery: (max\(.*\)) by/.exec(ofAdapter[1] ?? '')?.[1] ?? '';
    expect(answer(ofPods.replace('<<.LabelMatchers>>', `queue="${stage.queueName}"`), samples)).toBe(oldest);
  });
});
