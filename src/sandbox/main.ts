/**
 * Entry of a child, a process or a thread, which runs the processor of a file for one job at a time. Nothing of it
 * loads the engine: what the processor asks of its job, the worker does.
 */
import { isMainThread, parentPort } from 'node:worker_threads';
import { ASKED, TOLD, type Asked, type SaidOfOne, type ToChild, type ToParent, type Told } from './messages.js';
import { isObservable, lastValueOf } from '../job/observable.js';
import { fromPlainError, toPlainError } from './plain-error.js';
import type { SandboxedJob } from './sandboxed-job.js';
import type { JobJsonSandbox } from '../types/job-json.js';

/** Milliseconds to wait for an answer. As in BullMQ, tests wait for less. */
const PATIENCE_MS = process.env.NODE_ENV === 'test' ? 500 : 5000;
/** It is waited in so many parts. One in which the loop, or the whole machine, stood still is one: what came then is heard. */
const PARTS = 10;

type Process = (job: SandboxedJob, token?: string, signal?: AbortSignal) => unknown;

let processor: Process | undefined;
/** The jobs of the call that is running: one, or those of a batch. */
interface Running {
  readonly jobs: readonly JobJsonSandbox[];
  readonly controller: AbortController;
  /** Of each job of a batch. */
  readonly own: readonly AbortController[] | undefined;
  /** By the place of the job. */
  readonly said: Map<number, SaidOfOne>;
  done: Promise<void>;
}

let running: Running | undefined;
let lastQuestion = 0;
const questions = new Map<number, (answer: Extract<ToChild, { cmd: 'answer' }>) => void>();

/** Resolves when the message is on its way. */
function send(message: ToParent): Promise<void> {
  if (parentPort) {
    parentPort.postMessage(message);
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    if (!process.connected) return resolve(); // nobody hears it any more
    process.send!(message, (error: Error | null) => (error ? reject(error) : resolve()));
  });
}

async function hear(message: ToChild): Promise<void> {
  switch (message.cmd) {
    case 'init':
      return load(message.file);
    case 'start':
      if (running)
        return send({ cmd: 'failed', error: toPlainError(new Error('cannot start a not idling child process')) });
      return start(message);
    case 'cancel':
      return (message.of === undefined ? running?.controller : running?.own?.[message.of])?.abort(
        message.error ? fromPlainError(message.error) : message.reason,
      );
    case 'answer':
      return questions.get(message.question)?.(message);
    case 'stop':
      return stop();
  }
}

async function load(file: string): Promise<void> {
  try {
    const module = (await import(file)) as { default?: Process | { default?: Process } };
    const found = typeof module.default === 'function' ? module.default : module.default?.default;
    if (typeof found !== 'function') throw new Error('No function is exported in processor file');
    processor = found;
    await send({ cmd: 'ready' });
  } catch (error) {
    await send({ cmd: 'broken', error: toPlainError(error) });
  }
}

function start({ job, token, behind }: Extract<ToChild, { cmd: 'start' }>): Promise<void> {
  const jobs = [job, ...(behind?.map((each) => each.job) ?? [])];
  const current: Running = {
    jobs,
    controller: new AbortController(),
    own: behind && jobs.map(() => new AbortController()),
    said: new Map(),
    done: Promise.resolve(),
  };
  running = current;
  const tokens = [token, ...(behind?.map((each) => each.token) ?? [])];
  // a processor that throws before it promises anything has ended by then
  current.done = run(current, tokens);
  return current.done;
}

async function run(current: Running, tokens: readonly (string | undefined)[]): Promise<void> {
  const { jobs, controller, said } = current;
  let end: Extract<ToParent, { cmd: 'completed' | 'failed' }>;
  try {
    const batch = jobs.map((json) => toJob(json));
    batch.forEach((job, i) => joinBatch(job, i, batch, tokens[i], current));
    const returned = await processor!(batch[0], tokens[0], controller.signal);
    const value = isObservable(returned) ? await lastValueOf(returned, controller.signal) : returned;
    end = { cmd: 'completed', value: value === undefined ? null : value };
  } catch (error) {
    end = { cmd: 'failed', error: toPlainError(error) };
  }
  if (said.size > 0) end.said = [...said.values()];
  running = undefined;
  try {
    await send(end);
  } catch (error) {
    // A result that cannot be sent.
    await send({ cmd: 'failed', error: toPlainError(error) });
  }
}

/** The job as the processor sees it. */
function toJob(json: JobJsonSandbox): SandboxedJob {
  const job = {
    ...json,
    data: JSON.parse(json.data || '{}') as unknown,
    opts: json.opts,
    ...(json.opts.group && { gid: json.opts.group.id }),
    returnValue: JSON.parse(json.returnvalue || '{}') as unknown,
  } as Record<string, unknown>;
  for (const method of TOLD) {
    job[method] = (...given: unknown[]) => {
      const args = withoutUndefined(given);
      if (method === 'updateProgress') job.progress = args[0];
      if (method === 'updateData') job.data = args[0];
      return tell(json, method, args);
    };
  }
  for (const method of ASKED) job[method] = (...args: unknown[]) => ask(json, method, withoutUndefined(args));
  return job as unknown as SandboxedJob;
}

/** What a job knows of those that run together with it. */
function joinBatch(
  job: SandboxedJob,
  at: number,
  batch: SandboxedJob[],
  token: string | undefined,
  current: Running,
): void {
  const say = (call: string, said: Omit<SaidOfOne, 'of'>): void => {
    if (running !== current || !current.own) {
      throw new Error(`${call} is for a job of a batch, while the processor of its worker runs it`);
    }
    current.said.set(at, { of: at, ...said });
  };
  Object.assign(job, {
    getBatch: () => (at === 0 && running === current ? [...batch] : [job]),
    setResult: (result: unknown) => say('setResult', { result }),
    setAsFailed: (error: unknown) => say('setAsFailed', { error: toPlainError(error) }),
    ...(current.own && { token, signal: current.own[at].signal }),
  });
}

/** What a caller leaves open must reach the job as such: between processes `undefined` becomes `null`. */
function withoutUndefined(args: unknown[]): unknown[] {
  return args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
}

/** Whose call it is, where the worker cannot know: it takes a call for one of the job that runs. */
function whose(json: JobJsonSandbox): { of?: number; late?: JobJsonSandbox } {
  const at = running ? running.jobs.indexOf(json) : -1;
  if (at < 0) return { late: json };
  return at === 0 ? {} : { of: at };
}

function tell(json: JobJsonSandbox, method: Told, args: unknown[]): Promise<void> {
  return send({ cmd: 'call', method, args, ...whose(json) });
}

function ask(json: JobJsonSandbox, method: Asked, args: unknown[]): Promise<unknown> {
  const question = ++lastQuestion;
  return new Promise((resolve, reject) => {
    let parts = 0;
    const timer = setInterval(() => {
      if (++parts < PARTS) return;
      clearInterval(timer);
      questions.delete(question);
      reject(new Error(`TimeoutError: ${method} timed out in (${PATIENCE_MS}ms)`));
    }, PATIENCE_MS / PARTS);
    questions.set(question, ({ value, error }) => {
      clearInterval(timer);
      questions.delete(question);
      if (error) reject(fromPlainError(error));
      else resolve(value);
    });
    send({ cmd: 'call', method, args, question, ...whose(json) }).catch(reject);
  });
}

/** Lets the job that is running end, then leaves. */
async function stop(): Promise<void> {
  // where nobody hears of it any more, telling the end fails
  await running?.done.catch(() => {});
  process.exit(0);
}

function onMessage(message: ToChild): void {
  void hear(message);
}

if (isMainThread) {
  process.on('message', onMessage);
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
  // the worker is gone; what the job was about to do it does
  process.on('disconnect', () => void stop());
} else {
  parentPort!.on('message', onMessage);
}

process.on('uncaughtException', (error) => {
  const told: ToParent = { cmd: running ? 'failed' : 'broken', error: toPlainError(error), leaves: true };
  void send(told).finally(() => process.exit(1));
});
