/**
 * What programs for BullMQ 5 do, and find again with `chasquimq/v5`: the tests beside this file run each on both, and the table in
 * docs/v5.md is made of this list.
 */

interface Idiom {
  /** Names the test. */
  readonly id: string;
  /** What the program writes: code, unless backticks in it say what of it is. */
  readonly code: string;
  /** What BullMQ 5.81 makes of it. */
  readonly does: string;
  /** What `chasquimq/v5` does instead, and why; the same unless given. */
  readonly here?: string;
}

export const IDIOMS = [
  // ---- What repeats
  {
    id: 'repeat-every',
    code: 'queue.add(name, data, { repeat: { every: 60_000 } })',
    does: 'one delayed job, due at the next whole minute; a job scheduler that makes the others',
  },
  {
    id: 'repeat-pattern',
    code: "queue.add(name, data, { repeat: { pattern: '0 3 * * *', tz: 'Europe/Lisbon' } })",
    does: 'one delayed job, due when the pattern says in that time zone',
  },
  { id: 'repeat-utc', code: 'repeat: { pattern, utc: true }', does: 'the pattern is read in UTC' },
  { id: 'repeat-cron', code: "repeat: { cron: '0 3 * * *' }", does: 'the same as `pattern`, which replaced it' },
  { id: 'repeat-immediately', code: 'repeat: { pattern, immediately: true }', does: 'the first job waits for nothing' },
  {
    id: 'repeat-every-immediately',
    code: 'repeat: { every, immediately: true }',
    does: 'the first job waits for nothing; its id tells the multiple of `every` that has passed',
    here: 'its id tells the moment, from which the others count',
  },
  { id: 'repeat-id', code: 'job.id, job.repeatJobKey', does: '`repeat:<key>:<time>`, and the key' },
  { id: 'repeat-opts', code: 'job.opts.repeat', does: 'what was given, with the number of the run as `count`' },
  { id: 'repeat-again', code: 'the same `add` at each start of the program', does: 'one of it, with one job' },
  {
    id: 'repeat-again-data',
    code: 'the same `add` with other data',
    does: 'the pending job keeps its data',
    here: 'the pending job is replaced: a deployment with new data takes effect at once',
  },
  { id: 'repeat-job-id', code: "add(name, data, { repeat, jobId: 'a' })", does: 'two that differ in `jobId` are two' },
  { id: 'repeat-key', code: "repeat: { every, key: 'mine' }", does: 'the key is that text' },
  {
    id: 'repeat-hash',
    code: "settings: { repeatKeyHashAlgorithm: 'sha256' }",
    does: 'keys are made by it, and not by md5',
  },
  { id: 'repeat-limit', code: 'repeat: { every, limit: 2 }', does: 'runs twice' },
  { id: 'repeat-end-date', code: 'repeat: { every, endDate: yesterday }', does: 'rejects' },
  { id: 'repeat-neither', code: 'repeat: {}', does: 'rejects' },
  { id: 'repeat-both', code: 'repeat: { every, pattern }', does: 'rejects' },
  { id: 'repeat-bad-pattern', code: "repeat: { pattern: 'soon' }", does: 'rejects' },
  {
    id: 'repeat-strategy',
    code: 'new Queue(name, { settings: { repeatStrategy } })',
    does: 'asks it when the first job is due',
  },
  {
    id: 'repeat-runs',
    code: 'new Worker(name, processor)',
    does: 'runs the job, and makes the one that follows, with its data and options',
  },
  {
    id: 'repeat-defaults',
    code: 'new Queue(name, { defaultJobOptions })',
    does: 'they hold for the jobs that repeat, too',
  },
  { id: 'repeat-none-emitted', code: "queue.on('waiting')", does: 'is not told of jobs that repeat' },
  // ---- What is known of it
  {
    id: 'repeatable-jobs',
    code: 'queue.getRepeatableJobs()',
    does: '`{ key, name, endDate, tz, pattern, every, next }` of each, `every` as text, null for what was not said',
  },
  { id: 'repeatable-jobs-range', code: 'queue.getRepeatableJobs(0, 1, true)', does: 'by the next run, a page of it' },
  {
    id: 'repeatable-jobs-schedulers',
    code: 'queue.getJobSchedulers()',
    does: 'job schedulers and repeatable jobs are in one list, by either name',
  },
  {
    id: 'repeatable-remove',
    code: 'queue.removeRepeatable(name, repeat)',
    does: 'true, and its delayed job is gone; false when there is none',
  },
  {
    id: 'repeatable-remove-job-id',
    code: "queue.removeRepeatable(name, repeat, 'a')",
    does: 'removes the one with that `jobId`',
  },
  {
    id: 'repeatable-remove-by-key',
    code: 'queue.removeRepeatableByKey(key)',
    does: 'the same, by the key that `getRepeatableJobs` tells',
  },
  { id: 'repeatable-queue-repeat', code: '(await queue.repeat).getRepeatableCount()', does: 'the number of them' },
  { id: 'repeatable-worker-repeat', code: '(await worker.repeat).getRepeatableJobs()', does: 'the same by a worker' },
  {
    id: 'repeatable-scheduler',
    code: 'queue.upsertJobScheduler(id, { every })',
    does: 'the first job runs at once, the others follow',
  },
  // ---- A paused queue
  {
    id: 'paused-counts',
    code: 'queue.getJobCounts()',
    does: '`paused` tells the waiting list of a paused queue, `waiting` is 0',
  },
  { id: 'paused-counts-named', code: "queue.getJobCounts('waiting')", does: 'tells `waiting` and `paused`' },
  { id: 'paused-counts-wait', code: "queue.getJobCounts('wait', 'paused')", does: 'tells those two' },
  {
    id: 'paused-count',
    code: 'queue.count(), getWaitingCount(), getJobCountByTypes()',
    does: 'count the waiting list, paused or not',
  },
  {
    id: 'paused-jobs',
    code: "queue.getJobs(['paused'])",
    does: 'the waiting list of a paused queue; nothing otherwise',
  },
  { id: 'paused-waiting', code: "queue.getWaiting(), getJobs(['waiting'])", does: 'the waiting list, paused or not' },
  { id: 'paused-wait-jobs', code: "queue.getJobs(['wait'])", does: 'nothing while the queue is paused' },
  { id: 'paused-ranges', code: "queue.getRanges(['paused'])", does: 'the ids of the waiting list of a paused queue' },
  {
    id: 'paused-state',
    code: 'job.getState(), queue.getJobState(id)',
    does: '`waiting` for a job in the waiting list, paused or not',
  },
  { id: 'paused-is-waiting', code: 'job.isWaiting()', does: 'true for it' },
  {
    id: 'paused-others',
    code: 'a job with a `delay` or a `priority`',
    does: 'is `delayed` or `prioritized`, whether the queue is paused or not',
  },
  {
    id: 'paused-clean',
    code: "queue.clean(0, 0, 'paused')",
    does: 'removes the waiting list of a paused queue; `cleaned` is told the type `paused`',
    here: '`cleaned` is told the type `wait`, under which the jobs are kept',
  },
  { id: 'paused-clean-wait', code: "queue.clean(0, 0, 'wait')", does: 'removes nothing while the queue is paused' },
  { id: 'paused-drain', code: 'queue.drain()', does: 'empties the waiting list, paused or not' },
  { id: 'paused-resume', code: 'queue.resume()', does: 'what was `paused` is `waiting`, and runs' },
  // ---- Jobs
  { id: 'is-in-list', code: "job.isInList('wait'), isInZSet('delayed')", does: 'where the job is kept' },
  { id: 'discard', code: 'job.discard()', does: 'a try that fails then is the last one' },
  { id: 'discard-completed', code: 'job.discard(); return value', does: 'says nothing to a try that succeeds' },
  {
    id: 'debounce-ttl',
    code: 'add(name, data, { debounce: { id, ttl } })',
    does: 'further adds of that id yield to the job until the time is over',
  },
  { id: 'debounce', code: 'add(name, data, { debounce: { id } })', does: '... until the job has ended' },
  { id: 'debounce-job', code: 'job.debounceId, queue.getDebounceJobId(id)', does: 'the id, and the job that owns it' },
  { id: 'debounce-remove', code: 'queue.removeDebounceKey(id)', does: '1, and the next add of that id is added' },
  { id: 'debounce-no-id', code: 'debounce: {}', does: 'rejects' },
  { id: 'debounced', code: "queueEvents.on('debounced')", does: 'tells the job that stays, before `deduplicated`' },
  { id: 'priority', code: 'add(name, data, { priority: 2_097_151 })', does: 'is the last priority' },
  {
    id: 'priority-older',
    code: 'add(name, data, { priority: 2_097_152 })',
    does: 'rejects; until 5.80 it was the last priority',
    here: 'is taken for 2,097,151, as programs for 5.80 have it',
  },
  { id: 'priority-beyond', code: 'add(name, data, { priority: 2_097_153 })', does: 'rejects' },
  // ---- Connections
  {
    id: 'client',
    code: 'await queue.client',
    does: 'an ioredis client, connected, for commands of your own; also of workers, flow producers and events',
  },
  {
    id: 'client-shared',
    code: 'new Queue(name, { connection: ioredis })',
    does: '`client` is the same connection, which stays open when the queue closes',
  },
  { id: 'client-closes', code: 'queue.close(), worker.close()', does: 'closes the client' },
  { id: 'client-disconnects', code: 'queue.disconnect()', does: 'closes it at once' },
  { id: 'client-ready', code: 'await queue.waitUntilReady()', does: 'gives a client, too' },
  { id: 'redis-version', code: 'queue.redisVersion', does: 'the version of the server, once there is a connection' },
  { id: 'worker-resume', code: 'worker.pause(); worker.resume()', does: 'takes jobs again' },
  { id: 'no-backend', code: 'typeof queue.getBackend', does: 'undefined: tools tell the majors apart by it' },
] as const satisfies readonly Idiom[];

export type IdiomId = (typeof IDIOMS)[number]['id'];

/** The table of docs/v5.md. */
export function tableOf(idioms: readonly Idiom[]): string[] {
  const asCode = (text: string) => (text.includes('`') ? text : `\`${text}\``);
  const rows = idioms.map(({ code, does, here }) => [asCode(code), does, here ?? 'the same']);
  return [['Idiom', 'BullMQ 5.81', '`chasquimq/v5`'], ['---', '---', '---'], ...rows].map(
    (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`,
  );
}
