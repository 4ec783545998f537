// Each example is installed from a registry, as its README says, started by its one command, asked for what it does, and
// stopped.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { copyExample, exampleEnvironment, exampleNames, neededBy } from '../support/examples.js';
import { OwnPostgres } from '../support/own-postgres.js';
import { Registry } from '../support/registry.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

const LONG_MS = 300_000;

const own = useOwnServer();
let folder = '';
let registry: Registry;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chasquimq-examples-'));
  registry = await Registry.start(folder, neededBy(exampleNames()));
}, LONG_MS);
afterAll(async () => {
  await registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

let running: Example | undefined;
afterEach(async () => {
  await running?.kill();
  running = undefined;
});

class Example {
  output = '';
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown[]>;

  private constructor(project: string, args: string[], more: NodeJS.ProcessEnv = {}) {
    const here = { ...more, PORT: '0', REDIS_URL: `redis://127.0.0.1:${own.server.port}` };
    const env = { ...exampleEnvironment(folder, registry.url), ...here };
    // a group: a signal reaches all that the command has started, as in a terminal
    this.#process = spawn('npm', args, { cwd: project, env, detached: true, stdio: 'pipe' });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.#ended = once(this.#process, 'close');
  }

  /** Installs an example into a folder of its own, and starts it. */
  static async start(name: string, env: NodeJS.ProcessEnv = {}): Promise<Example> {
    const project = copyExample(name, folder);
    const install = new Example(project, ['install']);
    const [code] = await install.#ended;
    expect(code, install.output).toBe(0);
    return (running = new Example(project, ['start'], env));
  }

  /** What it said that matches. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    const match = () => pattern.exec(this.output) ?? (this.#process.exitCode !== null && ['it ended']);
    const found = await until(`${pattern} of\n${this.output}`, match, LONG_MS);
    expect(found, this.output).not.toEqual(['it ended']);
    return found as RegExpExecArray;
  }

  async url(): Promise<string> {
    return (await this.said(/listening http:\/\/localhost:(\d+)/))[0].replace('listening ', '');
  }

  /** Asks it to end, which it does, and leaves no connection behind. */
  async stop(): Promise<void> {
    process.kill(-(this.#process.pid ?? 0), 'SIGTERM');
    await this.#ended;
    const isAlone = async () => ((await own.redis.client('LIST')) as string).trim().split('\n').length === 1;
    await until('the end of its connections', isAlone);
  }

  /** It ends by itself. */
  async ended(): Promise<void> {
    expect((await this.#ended)[0], this.output).toBe(0);
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    process.kill(-(this.#process.pid ?? 0), 'SIGKILL');
    await this.#ended;
  }
}

async function post(url: string, body: unknown): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(response.status).toBe(202);
  return (await response.json()) as Record<string, unknown>;
}

async function ended(url: string): Promise<Record<string, unknown>> {
  return until(`the end of ${url}`, async () => {
    const job = (await (await fetch(url)).json()) as Record<string, unknown>;
    return ['completed', 'failed'].includes(String(job.state)) ? job : undefined;
  }).then((job) => job ?? {});
}

it('a web API with a worker and bull-board', { timeout: LONG_MS }, async () => {
  const example = await Example.start('web-api');
  const url = await example.url();
  const { id } = await post(`${url}/mails`, { to: 'ana@example.com' });
  expect(await ended(`${url}/mails/${id as string}`)).toMatchObject({
    state: 'completed',
    result: 'sent to ana@example.com',
  });
  const board = await fetch(`${url}/board/api/queues`);
  expect(await board.json()).toMatchObject({ queues: [{ name: 'mails', counts: { completed: 1 } }] });
  expect((await fetch(`${url}/mails/none`)).status).toBe(404);
  await example.stop();
});

it('a Nest application', { timeout: LONG_MS }, async () => {
  const example = await Example.start('nest');
  await example.said(/one\.wav is one\.ogg/);
  await example.said(/two\.wav is two\.ogg/);
  await example.stop();
});

it('route handlers, and a worker apart', { timeout: LONG_MS }, async () => {
  const example = await Example.start('next-style');
  const url = await example.url();
  const report = { month: '2026-11' };
  expect(await post(`${url}/api/reports`, report)).toEqual({ id: 'monthly-2026-11' });
  await post(`${url}/api/reports`, report);
  const result = 'report-2026-11.pdf';
  expect(await ended(`${url}/api/reports?id=monthly-2026-11`)).toEqual({ state: 'completed', progress: 50, result });
  expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
  await example.stop();
});

it('figures for Prometheus, and traces', { timeout: LONG_MS }, async () => {
  const example = await Example.start('observability');
  const url = await example.url();
  expect((await fetch(`${url}/orders`, { method: 'POST' })).status).toBe(200);
  const [, traceId, job] = await example.said(/span (\w+) \w+ (\w+) pack\n/);
  await example.said(new RegExp(`span ${traceId} ${job} \\w+ process orders\n`));
  await example.said(new RegExp(`span ${traceId} \\w+ - request\n`));
  const scraped = () => fetch(`${url}/metrics`).then((response) => response.text());
  await until('the order in the figures', async () =>
    /_completed_total\{.*service="example"\} 1\n/.test(await scraped()),
  );
  expect(await scraped()).toContain('bullmq_job_count{queue="orders", state="completed", service="example"} 1');
  await example.stop();
});

it('an INSERT for many jobs', { timeout: LONG_MS }, async () => {
  const postgres = await OwnPostgres.start();
  try {
    const example = await Example.start('batch-insert', { DATABASE_URL: postgres.url });
    await example.said(/one job a call: 19999 rows, 1 failed, \d+ rows a second/);
    await example.said(/up to 500 jobs a call: 19999 rows, 1 failed, \d+ rows a second/);
    await example.ended();
  } finally {
    await postgres.close();
  }
});

it('none is left out', () => {
  const tested = readFileSync(new URL(import.meta.url), 'utf8');
  // an example of a migration has a test of its own
  expect(exampleNames().filter((name) => !tested.includes(`start('${name}'`) && name !== 'migration')).toEqual([]);
});

it('a running system that moves from BullMQ', { timeout: LONG_MS }, async () => {
  const example = await Example.start('migration');
  const [, theirs, ours] = await example.said(/moved: (\d+) orders by BullMQ, (\d+) by ChasquiMQ, 0 not once/);
  expect(Number(theirs) + Number(ours)).toBe(600);
  expect(Number(ours)).toBeGreaterThan(200);
  await example.ended();
});
