/**
 * Programs as users of BullMQ 5 write them. They are compiled, never run: against BullMQ 5's types by `tsc -p __test__/types`, and
 * against those of `chasquimq/v5` by the `tsc` of the whole project.
 */
import {
  FlowProducer,
  Job,
  PRIORITY_LIMIT,
  Queue,
  QueueEvents,
  QueueEventsProducer,
  UnrecoverableError,
  Worker,
  getNextMillis,
} from 'v5-under-test';
import type {
  BulkJobOptions,
  ConnectionOptions,
  JobNode,
  JobState,
  JobType,
  JobsOptions,
  Processor,
  QueueEventsListener,
  QueueListener,
  QueueOptions,
  RedisClient,
  Repeat,
  RepeatOptions,
  WorkerListener,
  WorkerOptions,
} from 'v5-under-test';

interface Mail {
  to: string;
}
interface Sent {
  at: number;
}
type MailName = 'welcome' | 'reminder';

const connection: ConnectionOptions = { host: 'localhost', port: 6379 };

export async function repeats(): Promise<void> {
  const queue = new Queue<Mail, Sent, MailName>('mail', { connection });
  const repeat: RepeatOptions = { pattern: '0 3 * * *', tz: 'Europe/Lisbon', limit: 3, endDate: new Date(), utc: true };
  const opts: JobsOptions = { repeat, jobId: 'nightly', debounce: { id: 'ana', ttl: 1000 } };
  const job: Job<Mail, Sent, MailName> = await queue.add('reminder', { to: 'ana' }, opts);
  await queue.add('reminder', { to: 'ana' }, { repeat: { every: 1000, immediately: true, key: 'mine' } });
  const [found] = await queue.getRepeatableJobs(0, -1, true);
  const { key, name, endDate, tz, pattern, every, next } = found;
  await queue.removeRepeatableByKey(key);
  const removed: boolean = await queue.removeRepeatable('reminder', repeat, 'nightly');
  const repeating: Repeat = await queue.repeat;
  const count: number = await repeating.getRepeatableCount();
  console.log(job.repeatJobKey, name, endDate, tz, pattern, every, next, removed, count, PRIORITY_LIMIT);
  console.log(getNextMillis(Date.now(), { every: 1000 }));
  // @ts-expect-error -- a name that this queue does not have
  await queue.removeRepeatable('other', repeat);
}

export async function jobs(): Promise<void> {
  const processor: Processor<Mail, Sent, MailName> = async (job, token) => {
    job.discard();
    await job.updateProgress(50);
    if (!token) throw new UnrecoverableError('no token');
    return { at: job.data.to.length };
  };
  const options: WorkerOptions = { connection, concurrency: 5 };
  const worker = new Worker<Mail, Sent, MailName>('mail', processor, options);
  const onCompleted: WorkerListener<Mail, Sent, MailName>['completed'] = (job, result) =>
    console.log(job.id, result.at);
  worker.on('completed', onCompleted);
  worker.on('failed', (job: Job<Mail, Sent, MailName> | undefined, error: Error) =>
    console.log(job?.debounceId, error),
  );
  worker.resume();
  const next: Job<Mail, Sent, MailName> | undefined = await worker.getNextJob('token');
  console.log(next?.deduplicationId, await worker.repeat, worker.redisVersion);
  const blocking: RedisClient = await worker.waitUntilReady();
  await blocking.get('key');
}

export async function queues(): Promise<void> {
  const options: QueueOptions = {
    connection,
    defaultJobOptions: { attempts: 3 },
    settings: { repeatKeyHashAlgorithm: 'sha256' },
  };
  const queue = new Queue<Mail, Sent, MailName>('mail', options);
  const types: JobType[] = ['paused', 'waiting', 'wait', 'repeat', 'completed'];
  const counts: { [index: string]: number } = await queue.getJobCounts('paused', ...types);
  const found: Job<Mail, Sent, MailName>[] = await queue.getJobs(types, 0, 9, true);
  const one: Job<Mail, Sent, MailName> | undefined = await queue.getJob('1');
  const waiting: Job<Mail, Sent, MailName>[] = await queue.getWaiting();
  const state: JobState | 'unknown' = await found[0].getState();
  await queue.clean(0, 10, 'paused');
  const ids: string[] = await queue.getRanges(['paused'], 0, -1);
  const bulk: { name: MailName; data: Mail; opts?: BulkJobOptions }[] = [
    { name: 'welcome', data: { to: 'ana' }, opts: { debounce: { id: 'ana', ttl: 5 }, priority: 2_097_152 } },
  ];
  const added: Job<Mail, Sent, MailName>[] = await queue.addBulk(bulk);
  added[0].discard();
  const owner: string | null = await queue.getDebounceJobId('ana');
  const freed: number = await queue.removeDebounceKey('ana');
  const client: RedisClient = await queue.client;
  const value: string | null = await client.get('key');
  const ready: RedisClient = await queue.waitUntilReady();
  const version: string = queue.redisVersion;
  const onWaiting: QueueListener<Job<Mail, Sent, MailName>>['waiting'] = (job) => job.discard();
  queue.on('waiting', onWaiting);
  queue.on('error', (error: Error) => console.log(error));
  const again: Job<Mail, Sent, MailName> | undefined = await Job.fromId<Mail, Sent, MailName>(queue, '1');
  again?.discard();
  const runs: number | undefined = added[0].opts.repeat?.count;
  console.log(counts, one, waiting, state, ids, owner, freed, value, ready.status, version, runs);
  // @ts-expect-error -- data of another type
  await queue.add('welcome', { to: 1 });
}

export async function others(): Promise<void> {
  const flows = new FlowProducer({ connection });
  const node: JobNode = await flows.add({ name: 'a', queueName: 'q', children: [{ name: 'b', queueName: 'q' }] });
  node.job.discard();
  await (await flows.client).get('key');
  const events = new QueueEvents('mail', { connection });
  const onDebounced: QueueEventsListener['debounced'] = ({ jobId, debounceId }) => console.log(jobId, debounceId);
  events.on('debounced', onDebounced);
  events.on('completed', ({ jobId, returnvalue }) => console.log(jobId, returnvalue));
  events.once('deduplicated', ({ deduplicationId }, id) => console.log(deduplicationId, id));
  await (await events.client).get('key');
  const result: unknown = await node.job.waitUntilFinished(events);
  const producer = new QueueEventsProducer('mail', { connection });
  await producer.publishEvent({ eventName: 'mine', x: 1 });
  console.log(result);
}
