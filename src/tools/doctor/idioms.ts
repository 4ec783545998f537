/** What BullMQ 5 had and 6 has not: code that uses it imports `chasquimq/v5`, or does it as 6 does. */
import type { Impact } from './difference.js';
import { filesOfV5, placesOf, type FileUses, type Finding } from './finding.js';
import type { Use } from './uses.js';

interface Idiom {
  readonly id: string;
  readonly title: string;
  /** How BullMQ 6 and the plain import do it. */
  readonly instead: string;
  readonly impact?: Impact;
  /** `chasquimq/v5` does not bring it either. */
  readonly isGone?: boolean;
  /** @param holders variables that hold a queue, in any file */
  readonly fits: (use: Use, holders: ReadonlySet<string>) => boolean;
}

const QUEUE_LIKE = /queue|worker|flow|producer/i;

const called =
  (...names: string[]) =>
  (use: Use) =>
    use.kind === 'call' && names.includes(use.name);
const imported =
  (...names: string[]) =>
  (use: Use) =>
    use.kind === 'name' && names.includes(use.name);
const given = (name: string, to?: RegExp) => (use: Use) =>
  use.kind === 'option' && use.name === name && (to === undefined || to.test(use.of));
const read = (name: string, of: RegExp) => (use: Use, holders: ReadonlySet<string>) =>
  use.kind === 'member' && use.name === name && (of.test(use.of) || (of === QUEUE_LIKE && holders.has(use.of)));

export const IDIOMS: readonly Idiom[] = [
  {
    id: 'v5-repeat',
    title: '`add` with `repeat`',
    instead:
      'queue.upsertJobScheduler(id, repeat, { name, data }); with the plain import the job runs once and never again.',
    fits: given('repeat', /^(add|addBulk|opts|options|jobOptions|defaultJobOptions|jobsOpts)$/i),
  },
  {
    id: 'v5-repeatable-jobs',
    title: '`getRepeatableJobs`, `removeRepeatable`, `removeRepeatableByKey`',
    instead: 'getJobSchedulers and removeJobScheduler.',
    fits: called('getRepeatableJobs', 'removeRepeatable', 'removeRepeatableByKey', 'getRepeatableCount'),
  },
  {
    id: 'v5-queue-repeat',
    title: '`queue.repeat` and the class `Repeat`',
    instead: 'queue.jobScheduler and JobScheduler.',
    fits: (use, holders) => read('repeat', QUEUE_LIKE)(use, holders) || imported('Repeat')(use),
  },
  {
    id: 'v5-repeat-options',
    title: 'the repeat options `utc`, `currentDate`, `nthDayOfWeek`',
    instead: "tz: 'UTC', startDate, and # in the pattern.",
    fits: (use) =>
      ['utc', 'currentDate', 'nthDayOfWeek'].some((name) => given(name, /repeat|upsertJobScheduler/i)(use)),
  },
  {
    id: 'v5-nth-day-of-week',
    title: 'the repeat option `nthDayOfWeek`',
    instead: '# in the pattern.',
    isGone: true,
    fits: given('nthDayOfWeek'),
  },
  {
    id: 'v5-discard',
    title: '`job.discard()`',
    instead: 'throw new UnrecoverableError(reason).',
    fits: (use) => called('discard')(use) && /job/i.test(use.of),
  },
  {
    id: 'v5-debounce',
    title: '`debounce`, `debounceId`, the event `debounced`',
    instead: 'deduplication, deduplicationId and the event deduplicated; the plain import rejects debounce.',
    fits: (use, holders) =>
      given('debounce')(use) ||
      read('debounceId', /./)(use, holders) ||
      (use.kind === 'event' && use.name === 'debounced'),
  },
  {
    id: 'v5-client',
    title: '`queue.client`, `worker.client`, `worker.blockingClient`',
    instead: 'a Redis client of your own; (await queue.getBackend().client) has status, info() and ping().',
    fits: (use, holders) =>
      read('client', QUEUE_LIKE)(use, holders) || read('blockingClient', QUEUE_LIKE)(use, holders),
  },
  {
    id: 'v5-redis-version',
    title: '`redisVersion`',
    instead: '(await queue.getBackend().client).info().',
    fits: read('redisVersion', QUEUE_LIKE),
  },
  {
    id: 'v5-paused-state',
    title: 'the state `paused` in counts and lists',
    instead: 'waiting: jobs of a paused queue wait, and queue.isPaused() tells.',
    impact: 'check',
    fits: (use, holders) => (use.kind === 'state' && use.name === 'paused') || read('paused', /count/i)(use, holders),
  },
  {
    id: 'v5-is-in-list',
    title: '`job.isInList`, `job.isInZSet`',
    instead: 'job.getState().',
    fits: called('isInList', 'isInZSet'),
  },
  {
    id: 'v5-queue-scheduler',
    title: '`QueueScheduler`',
    instead: 'nothing: workers do what it did.',
    isGone: true,
    fits: imported('QueueScheduler'),
  },
  {
    id: 'v5-inner-exports',
    title: '`Scripts`, `createScripts`, `JobJsonRaw`, `RedisJobOptions`',
    instead: 'the methods of Queue and Job: what they reached in Redis is not there.',
    isGone: true,
    fits: imported('Scripts', 'createScripts', 'JobJsonRaw', 'RedisJobOptions'),
  },
];

/** Files that import `chasquimq/v5` have what it brings. */
export function idiomsIn(files: readonly FileUses[]): Finding[] {
  const holders = new Set(
    files.flatMap(({ uses }) => uses.filter(({ kind }) => kind === 'holder').map(({ name }) => name)),
  );
  const ofV5 = filesOfV5(files);
  return IDIOMS.flatMap(({ id, title, instead, impact = 'breaking', isGone = false, fits }) => {
    const places = placesOf(files, (use, file) => fits(use, holders) && (isGone || !ofV5.has(file)));
    const text = isGone
      ? `Neither chasquimq nor chasquimq/v5 has it. Use ${instead}`
      : `BullMQ 6 and chasquimq have no such thing. Import from chasquimq/v5, or use ${instead}`;
    return places.length === 0 ? [] : [{ kind: 'idiom' as const, id, impact, title, text, places }];
  });
}
