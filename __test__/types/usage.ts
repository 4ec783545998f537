/**
 * Programs as BullMQ's users write them. They are compiled, never run: against BullMQ's types by `tsc -p __test__/types`,
 * and against ours by the `tsc` of the whole project. What compiles with one must compile with the other, and what is
 * wrong must be wrong for both.
 */
import {
  ConnectionClosedError,
  DelayedError,
  FlowProducer,
  MetricsTime,
  Queue,
  QueueEvents,
  QueueEventsProducer,
  RateLimitError,
  UnrecoverableError,
  WaitingChildrenError,
  WaitingError,
  Worker,
  defaultRepeatStrategy,
  getNextMillis,
} from 'library-under-test';
import type {
  BackoffOptions,
  BackoffStrategy,
  BulkJobOptions,
  ConnectionOptions,
  DefaultJobOptions,
  DependenciesOpts,
  FlowJob,
  FlowJobNode,
  FlowNestedLeafJob,
  FlowOpts,
  FlowParentJob,
  FlowProducerOptions,
  FlowQueuesOpts,
  GetNextJobOptions,
  IConnection,
  Job,
  JobJson,
  JobNode,
  JobProgress,
  JobScheduler,
  JobSchedulerJobOptions,
  JobSchedulerJson,
  JobsOptions,
  JobState,
  JobType,
  KeepJobs,
  MinimalJob,
  MoveToDelayedOpts,
  MoveToWaitingChildrenOpts,
  NodeOpts,
  ParentKeyOpts,
  Processor,
  QueueEventsListener,
  QueueEventsOptions,
  QueueEventsProducerOptions,
  QueueOptions,
  RepeatBaseOptions,
  RepeatableOptions,
  RepeatOptions,
  RepeatStrategy,
  RetryJobOpts,
  RetryOptions,
  SandboxedJob,
  SandboxedJobProcessor,
  WorkerListener,
  WorkerOptions,
} from 'library-under-test';

interface Mail {
  to: string;
  tries?: number;
}
interface Sent {
  at: number;
}
type MailName = 'welcome' | 'reminder';

const connection: ConnectionOptions = { host: 'localhost', port: 6379 };

export async function untyped(): Promise<void> {
  const queue = new Queue('mail', { connection });
  const job = await queue.add('any', { what: 'ever' }, { delay: 1000, attempts: 3, backoff: 500 });
  job.data.what.ever.it = 'is';
  const worker = new Worker('mail', async (job) => job.data.what, { connection });
  worker.on('completed', (job, result) => console.log(job.id, result.anything));
  await queue.close();
}

export async function typed(): Promise<Sent> {
  const defaultJobOptions: DefaultJobOptions = { removeOnComplete: { age: 3600, count: 10 }, removeOnFail: 50 };
  const options: QueueOptions = { connection, prefix: '{app}', defaultJobOptions, streams: { events: { maxLen: 10 } } };
  const queue = new Queue<Mail, Sent, MailName>('mail', options);
  const job: Job<Mail, Sent, MailName> = await queue.add('welcome', { to: 'ana' });
  // @ts-expect-error -- no such name
  await queue.add('other', { to: 'ana' });
  // @ts-expect-error -- no such data
  await queue.add('welcome', { of: 'ana' });
  const jobs: Job<Mail, Sent, MailName>[] = await queue.addBulk([
    { name: 'welcome', data: { to: 'ana' }, opts: { jobId: 'a' } satisfies BulkJobOptions },
    { name: 'reminder', data: { to: 'bo' } },
  ]);
  const found: Job<Mail, Sent, MailName> | undefined = await queue.getJob('1');
  const to: string | undefined = found?.data.to;
  const sent: Sent = job.returnvalue;
  // @ts-expect-error -- a text is no number
  const wrong: number = job.data.to;
  console.log(to, wrong, jobs.length);
  return sent;
}

export function processing(): Worker<Mail, Sent, MailName> {
  const processor: Processor<Mail, Sent, MailName> = async (job, token, signal) => {
    await job.updateProgress(50);
    await job.updateProgress({ sent: 1 });
    await job.log(`to ${job.data.to}`);
    await job.updateData({ ...job.data, tries: (job.data.tries ?? 0) + 1 });
    if (signal?.aborted) throw new UnrecoverableError('gone');
    switch (job.name) {
      case 'reminder':
        await job.moveToDelayed(Date.now() + 1000, token);
        throw new DelayedError();
      case 'welcome':
        return { at: Date.now() };
    }
  };
  const backoffStrategy: BackoffStrategy = (attemptsMade, type, error, job?: MinimalJob) =>
    type === 'mine' && error && job ? attemptsMade * 1000 : -1;
  const keep: KeepJobs = { count: 5 };
  const opts: WorkerOptions = {
    connection,
    concurrency: 5,
    name: 'mailer',
    autorun: false,
    lockDuration: 30_000,
    maxStalledCount: 2,
    maxStartedAttempts: 7,
    removeOnComplete: keep,
    limiter: { max: 10, duration: 1000 },
    metrics: { maxDataPoints: MetricsTime.ONE_WEEK },
    settings: { backoffStrategy },
  };
  const worker = new Worker<Mail, Sent, MailName>('mail', processor, opts);
  worker.on('active', (job, prev) => console.log(job.data.to, prev.length));
  worker.on('completed', (job, result, prev) => console.log(job.name, result.at, prev.length));
  worker.on('failed', (job, error) => console.log(job?.data.to, error.message));
  worker.on('progress', (job, progress: JobProgress) => console.log(job.id, progress));
  worker.on('stalled', (id, prev) => console.log(id.length, prev));
  worker.on('error', (error) => console.error(error.stack));
  worker.once('drained', () => {});
  worker.off('closed', () => {});
  const listener: WorkerListener<Mail, Sent, MailName>['completed'] = (job, result) => console.log(job.id, result.at);
  worker.on('completed', listener);
  // @ts-expect-error -- no such event
  worker.on('finished', () => {});
  return worker;
}

export async function control(worker: Worker<Mail, Sent>): Promise<void> {
  await worker.waitUntilReady();
  await worker.pause(true);
  await worker.resume();
  const running: [boolean, boolean] = [worker.isRunning(), worker.isPaused()];
  worker.concurrency = running[0] ? 2 : 3;
  const cancelled: boolean = worker.cancelJob('1', 'why');
  worker.cancelAllJobs(cancelled ? 'all' : undefined);
  await worker.close(true);
}

export async function byHand(): Promise<void> {
  const worker = new Worker<Mail, Sent>('mail', null, { connection });
  const options: GetNextJobOptions = { block: false };
  const job = await worker.getNextJob('token', options);
  if (!job) return;
  const extended: number = await job.extendLock('token', 1000);
  const tuple = await job.moveToCompleted({ at: extended }, 'token', false);
  if (tuple) console.log(tuple.length);
  await job.moveToFailed(new Error('no'), 'token', true);
  const left: number = await job.moveToWait('token');
  const failed: string[] = await worker.extendJobLocks(['1'], ['token'], left);
  await worker.startStalledCheckTimer();
  await worker.processJob(job, 'token', () => failed.length === 0);
}

export function files(): Worker[] {
  const fork: WorkerOptions = { connection, workerForkOptions: { env: {} } };
  const thread: WorkerOptions = { connection, useWorkerThreads: true, workerThreadsOptions: { env: {} } };
  return [new Worker('mail', '/processor.js', fork), new Worker('mail', new URL('file:///processor.mjs'), thread)];
}

export const inFile: SandboxedJobProcessor<Mail, Sent> = async (job: SandboxedJob<Mail, Sent>) => {
  await job.updateProgress(job.data.to.length);
  job.log('sent');
  await job.updateData({ to: 'bo' });
  await job.moveToWait('token');
  return { at: job.timestamp };
};

export async function events(job: Job<Mail, Sent>): Promise<Sent> {
  const options: QueueEventsOptions = { connection, lastEventId: '0-0', autorun: false, blockingTimeout: 100 };
  const queueEvents = new QueueEvents<Sent>('mail', options);
  queueEvents.on('completed', ({ jobId, returnvalue }, id) => console.log(jobId, returnvalue, id));
  queueEvents.on('failed', ({ jobId, failedReason, prev }) => console.log(jobId, failedReason, prev));
  queueEvents.on('delayed', ({ delay }) => console.log(delay + 1));
  queueEvents.on('progress', ({ data }) => console.log(data));
  queueEvents.on('drained', (id) => console.log(id.length));
  // @ts-expect-error -- no such event
  queueEvents.on('other', () => {});

  interface Custom extends QueueEventsListener {
    paid: (args: { jobId: string; amount: string }, id: string) => void;
  }
  queueEvents.on<Custom>('paid', ({ amount }: { amount: string }) => console.log(amount));

  const producerOptions: QueueEventsProducerOptions = { connection };
  const producer = new QueueEventsProducer('mail', producerOptions);
  await producer.publishEvent<{ eventName: string; amount: number }>({ eventName: 'paid', amount: 1 });
  await producer.publishEvent({ eventName: 'paid', jobId: '1' }, 100);
  // @ts-expect-error -- no name
  await producer.publishEvent({ amount: 1 });
  return job.waitUntilFinished(queueEvents, 1000);
}

export async function looking(queue: Queue<Mail, Sent>): Promise<void> {
  const types: JobType[] = ['waiting', 'active', 'delayed'];
  const counts: { [index: string]: number } = await queue.getJobCounts(...types);
  const jobs: Job<Mail, Sent>[] = await queue.getJobs(types, 0, 10, true);
  const state: JobState | 'unknown' = await queue.getJobState('1');
  const { logs, count }: { logs: string[]; count: number } = await queue.getJobLogs('1');
  console.log(counts, jobs, state, logs, count, await queue.isPaused());
  const json: JobJson = jobs[0].asJSON();
  const plain = jobs[0].toJSON();
  console.log(json.data.length, plain.data.to);
  const retry: RetryOptions = { resetAttemptsMade: true };
  await jobs[0].retry('failed', retry);
  await jobs[0].changePriority({ priority: 3 });
  await queue.obliterate({ force: true });
}

export class Mailer extends Worker<Mail, Sent> {
  protected override callProcessJob(job: Job<Mail, Sent>, token: string): Promise<Sent> {
    return super.callProcessJob(job, token);
  }
}

export class MailQueue extends Queue<Mail, Sent, MailName> {
  welcome(to: string, opts?: JobsOptions): Promise<Job<Mail, Sent, MailName>> {
    return this.add('welcome', { to }, opts);
  }
}

/** A queue of one kind of job, given as a whole. */
export const ofJobs = new Queue<Job<Mail, Sent, MailName>>('mail', { connection });
export const welcome: Promise<Job<Mail, Sent, MailName>> = ofJobs.add('welcome', { to: 'ana' });

export const backoffs: BackoffOptions[] = [{ type: 'exponential', delay: 1000, jitter: 0.5 }, { type: 'mine' }];
export const repeats: RepeatOptions[] = [{ pattern: '* * * * *' }, { every: 1000, limit: 3 }];
export const stored: RepeatableOptions = { name: 'a', every: 1000 };
export const scheduled: JobSchedulerJobOptions = { attempts: 3, repeat: { every: 1000 } };
export const repeatBase: RepeatBaseOptions = { connection, settings: {} };
export const moves: [MoveToDelayedOpts, RetryJobOpts] = [
  { skipAttempt: true, fetchNext: false },
  { fieldsToUpdate: {} },
];
export const errors: Error[] = [
  new RateLimitError(),
  new WaitingError('moved'),
  new WaitingChildrenError(),
  Worker.RateLimitError(),
];

export async function flows(): Promise<JobNode[]> {
  const options: FlowProducerOptions = { connection, prefix: '{app}' };
  const producer = new FlowProducer(options);
  producer.on('error', (error) => console.error(error.message));
  const leaf: FlowNestedLeafJob = { name: 'resize', queueName: 'images', opts: { failParentOnFailure: true } };
  const album: FlowParentJob = { name: 'album', queueName: 'albums', data: { of: 2 }, children: [leaf, leaf] };
  const node: FlowJobNode = album;
  const flow: FlowJob = {
    name: 'publish',
    queueName: 'sites',
    prefix: '{app}',
    opts: { jobId: 'site', priority: 2, parent: { id: '1', queue: '{app}:other' } },
    children: [node, { name: 'mail', queueName: 'mail', opts: { delay: 5, ignoreDependencyOnFailure: true } }],
  };
  const queuesOptions: FlowQueuesOpts = { images: { defaultJobOptions: { attempts: 3 } } };
  const opts: FlowOpts = { queuesOptions };
  const tree: JobNode = await producer.add(flow, opts);
  const children: JobNode[] = tree.children ?? [];
  const trees: JobNode[] = await producer.addBulk([flow, { name: 'alone', queueName: 'mail' }]);
  const which: NodeOpts = { queueName: 'sites', id: tree.job.id as string, depth: 2, maxChildren: 50 };
  const found = await producer.getFlow(which);
  console.log(found.job.id, children[0].job.parentKey, children[0].job.parent?.queueKey);
  // @ts-expect-error -- a flow needs a queue
  await producer.add({ name: 'no queue' });
  // @ts-expect-error -- a parent cannot yield to another job
  const refused: FlowParentJob = { name: 'x', queueName: 'y', opts: { deduplication: { id: 'z' } }, children: [leaf] };
  await producer.close();
  await producer.disconnect();
  return refused ? trees : [];
}

export async function families(queue: Queue<Mail, Sent>, job: Job<Mail, Sent>): Promise<number> {
  const values: Record<string, Sent> = await job.getChildrenValues<Sent>();
  const reasons: Record<string, string> = await job.getIgnoredChildrenFailures();
  const pages: DependenciesOpts = { processed: { cursor: 0, count: 10 }, failed: {} };
  const { processed, nextProcessedCursor, failed } = await job.getDependencies(pages);
  const { unprocessed } = await job.getDependenciesCount({ unprocessed: true });
  const options: MoveToWaitingChildrenOpts = { child: { id: '1', queue: 'bull:mail' } };
  if (await job.moveToWaitingChildren('token', options)) throw new WaitingChildrenError();
  const dropped: boolean = await job.removeChildDependency();
  await job.removeUnprocessedChildren();
  await job.remove({ removeChildren: dropped });
  const { items, jobs, total } = await queue.getDependencies('1', 'pending', 0, -1);
  console.log(
    Object.keys(values),
    reasons,
    processed,
    nextProcessedCursor,
    failed,
    items[0].id,
    jobs[0].name,
    unprocessed,
  );
  return total;
}

export async function schedulers(queue: Queue<Mail, Sent, MailName>): Promise<string[]> {
  const repeatStrategy: RepeatStrategy = (millis, { every, pattern }, name) =>
    name === 'never' ? undefined : getNextMillis(millis, { every, pattern });
  const other = new Queue<Mail, Sent, MailName>('other', { connection, settings: { repeatStrategy } });
  const template = { name: 'welcome' as MailName, data: { to: 'ana' }, opts: { attempts: 3, removeOnComplete: true } };
  const job: Job<Mail, Sent> = await queue.upsertJobScheduler(
    'welcome',
    { every: 1000, offset: 5, limit: 3 },
    template,
  );
  await other.upsertJobScheduler('welcome', { pattern: '0 0 * * *', tz: 'America/Lima', endDate: new Date() });
  // @ts-expect-error -- jobs of schedulers have ids of their own
  await queue.upsertJobScheduler('welcome', { every: 1000 }, { opts: { jobId: 'mine' } });
  const found = await queue.getJobScheduler('welcome');
  const all: JobSchedulerJson<Mail>[] = await queue.getJobSchedulers(0, 9, true);
  const scheduler: JobScheduler = await queue.jobScheduler;
  const direct = await scheduler.upsertJobScheduler(
    'x',
    { every: 5 },
    'n',
    {},
    {},
    { override: true, producerId: '1' },
  );
  const ended: number = await scheduler.removeJobScheduler('x');
  const next: number | undefined = defaultRepeatStrategy(Date.now(), { pattern: '* * * * *' });
  const later: number | undefined = getNextMillis(Date.now(), { every: 1_000 });
  const { id, cause }: { id: string; cause?: unknown } = { id: queue.token, cause: new ConnectionClosedError().cause };
  console.log(job.repeatJobKey, found?.next, found?.template?.data?.to, direct?.id, ended, next, later, id, cause);
  if (await queue.removeJobScheduler('welcome')) console.log(await queue.getJobSchedulersCount());
  return all.map(({ key }) => key);
}

export async function described(connection: IConnection, parent: ParentKeyOpts): Promise<string> {
  connection.on('error', (error: Error) => console.log(error.message));
  const ready: boolean = await connection.waitUntilReady();
  const info: string = await (await connection.client).info();
  const keys: (string | undefined)[] = [parent.parentKey, parent.parentDependenciesKey];
  const flags: (boolean | undefined)[] = [parent.addToWaitingChildren, parent.deferParentRelease];
  // @ts-expect-error -- a flag is no text
  const wrong: ParentKeyOpts = { addToWaitingChildren: 'yes' };
  return [ready, info, ...keys, ...flags, wrong.parentKey].join();
}
