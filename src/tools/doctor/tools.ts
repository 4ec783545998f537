/** Packages beside BullMQ that know its keys, its files or its classes. */
import type { CodeFile } from './files.js';
import type { Impact } from './difference.js';
import { placesOf, type FileUses, type Finding } from './finding.js';

interface Tool {
  readonly name: RegExp;
  readonly impact: Impact;
  readonly text: string;
}

const READS_KEYS =
  "It looks at BullMQ's keys (bull:*), by itself or by a BullMQ of its own, and finds nothing of ChasquiMQ's queues.";
const PATCHES =
  'It patches the package named bullmq while it is loaded, so spans and breadcrumbs of queues are missing; the telemetry option tells them.';

/** The first that fits a package counts. */
const TOOLS: readonly Tool[] = [
  { name: /^judoscale-bull(mq)?$/, impact: 'breaking', text: `${READS_KEYS} Scale by queue.getJobCounts() instead.` },
  {
    name: /^(bullmq-prometheus|bull-prom|bull-monitor|bullmq-exporter|@bull-monitor\/.+|bull-exporter)$/,
    impact: 'breaking',
    text: `${READS_KEYS} queue.exportPrometheusMetrics() gives the same figures.`,
  },
  {
    name: /^(bull-arena|bull-master|bull-repl|bullmq-proxy|@taskforcesh\/connector|taskforce-connector|@queuedash\/.+|queuedash)$/,
    impact: 'breaking',
    text: `${READS_KEYS} bull-board works, and chasquimq inspect, watch and failed.`,
  },
  {
    name: /^@taskforcesh\/bullmq-pro$/,
    impact: 'check',
    text: 'With "@taskforcesh/bullmq-pro": "npm:@chasquimq/as-bullmq-pro@^7.46.0" its programs get the classes of chasquimq/v5, and keep their imports. Of an observable the last value alone is stored.',
  },
  {
    name: /^(dd-trace|newrelic|@sentry\/(node|nestjs|opentelemetry)|.*instrumentation-bullmq|elastic-apm-node)$/,
    impact: 'check',
    text: PATCHES,
  },
  {
    name: /^(ioredis-mock|redis-memory-mock)$/,
    impact: 'breaking',
    text: 'The engine speaks with a real server: tests need one.',
  },
  {
    name: /^bull$/,
    impact: 'check',
    text: "Queues of Bull (the library before BullMQ) are BullMQ's in nothing but the name: they stay as they are.",
  },
  {
    name: /^(@bull-board\/.+|@nestjs\/bullmq|bullmq-otel)$/,
    impact: 'none',
    text: 'Works with the alias "bullmq": "npm:chasquimq", which gives it ChasquiMQ for BullMQ.',
  },
];

/** Shows jobs of groups once more, beside those that the counts have. */
const PRO_ADAPTER = /^@bull-board\/api\/(.*\/)?bullMQPro/i;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** What a manifest asks for, by name: the range, and the line it stands on. */
function dependenciesOf({ text }: CodeFile): { name: string; range: string; line: number }[] {
  const lines = text.split('\n');
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = read(text);
  const all = { ...peerDependencies, ...devDependencies, ...optionalDependencies, ...dependencies };
  return Object.entries(all).map(([name, range]) => ({
    name,
    range: String(range),
    line: Math.max(1, lines.findIndex((line) => line.includes(`"${name}"`)) + 1),
  }));
}

function read(text: string): Manifest {
  try {
    return (JSON.parse(text) ?? {}) as Manifest;
  } catch {
    return {};
  }
}

/** Which BullMQ the manifests ask for. */
export function bullmqOf(manifests: readonly CodeFile[]): string[] {
  const wanted = manifests.flatMap(dependenciesOf).filter(({ name }) => name === 'bullmq');
  return [...new Set(wanted.map(({ range }) => range))];
}

/** Tools that a manifest names, and keys that the code spells out. */
export function toolsIn(manifests: readonly CodeFile[], files: readonly FileUses[]): Finding[] {
  const found = new Map<string, Finding>();
  for (const manifest of manifests) {
    for (const { name, line } of dependenciesOf(manifest)) {
      const tool = TOOLS.find((each) => each.name.test(name));
      if (!tool) continue;
      const places = [...(found.get(name)?.places ?? []), { file: manifest.path, line }];
      const { impact, text } = tool;
      found.set(name, { kind: 'tool', id: `tool-${name}`, impact, title: `the package ${name}`, text, places });
    }
  }
  const adapters = placesOf(files, ({ kind, name }) => kind === 'import' && PRO_ADAPTER.test(name));
  if (adapters.length > 0) {
    const title = "bull-board's `BullMQProAdapter` shows jobs of groups twice";
    const text =
      'It adds the jobs of groups to getJobCounts() and getJobs(), which have them here: use BullMQAdapter, which shows each once.';
    found.set('pro-adapter', {
      kind: 'tool',
      id: 'tool-pro-adapter',
      impact: 'breaking',
      title,
      text,
      places: adapters,
    });
  }
  const places = placesOf(files, ({ kind }) => kind === 'key');
  if (places.length > 0) {
    const title = "keys of BullMQ's are spelled out";
    const text =
      'Programs that read or write bull:* with Redis commands find nothing of ChasquiMQ: use the methods of Queue and Job.';
    found.set('bull:', { kind: 'keys', id: 'raw-keys', impact: 'breaking', title, text, places });
  }
  return [...found.values()];
}
