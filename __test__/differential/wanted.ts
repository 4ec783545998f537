/**
 * The wanted differences (src/tools/doctor/differences.ts) that programs meet. Each row says what is left of the two texts that differ when what it
 * is about is taken away; a difference is wanted when nothing of it is left. So a row can hide no more than it names.
 */
import type { Difference } from './compare.js';
import { tellsOfGhost } from './ghosts.js';
import { calls, planOf, queueOf, strategiesOf, throws } from './plans.js';
import type { Observation, Program, Step } from './program.js';
import { tellsOfStuck } from './stuck.js';
import { withoutDelays } from './times.js';
import { messageOf, shown, thrown } from './values.js';
import type { Thrown } from './values.js';

export interface Context {
  readonly program: Program;
  readonly bullmq: Observation;
  readonly chasquimq: Observation;
}

/** What BullMQ says, and what this package says. */
export type Sides = readonly [bullmq: string, chasquimq: string];

/** The message of an error as it is stored: one that is a number is a text there. */
function storedMessageOf(what: unknown): string[] {
  try {
    return what instanceof Error ? [String(what.message)] : [];
  } catch {
    return []; // it cannot be looked at
  }
}

interface Wanted {
  /** Of the difference in src/tools/doctor/differences.ts. */
  readonly id: string;
  readonly reason: string;
  /** The rest of both. */
  without(sides: Sides, about: About, context: Context): Sides;
}

/** What a difference is about: a field of a job, or anything else by its path. */
export interface About {
  readonly path: string;
  readonly job?: string;
  readonly field?: string;
}

const SAME: Sides = ['', ''];
/** What is thrown and has no message. */
const WITHOUT_MESSAGE: readonly Thrown[] = ['text', 'number', 'function', 'null', 'undefined', 'nullMessage'];
const REFUSED = /^(Missing lock|Lock mismatch|Missing key) /;
const ODD_DELAY = /"number:(1e300|1e19|Infinity)"/;

export const WANTED: readonly Wanted[] = [
  {
    id: 'moved-and-returned',
    reason: 'BullMQ emits the error of a refused completion, and that of a failure, or retry, that it then tries',
    without: (sides, { path }) => {
      if (path !== 'workers.errors') return sides;
      const [theirs, ours] = sides.map((text) => text.split('\n'));
      const refused = ours.filter((line) => REFUSED.test(line)).length;
      const more = theirs.filter((line) => REFUSED.test(line)).length - refused;
      if (more < 0 || more > refused) return sides;
      return sides.map((text) => withoutLines(text, REFUSED)) as unknown as Sides;
    },
  },
  {
    id: 'drained-of-a-closing-worker',
    reason: 'BullMQ emits no error of an end that is refused while its worker closes, or is paused',
    without: (sides, { path }, { program }) => {
      if (path !== 'workers.errors') return sides;
      const [theirs, ours] = sides.map((text) => linesOf(text, REFUSED));
      // each of its jobs may end then
      const jobs = program.steps.map((step) =>
        step.do === 'stop' || step.do === 'pauseWorker' ? program.workers[step.worker].concurrency : 0,
      );
      const most = jobs.reduce((sum, own) => sum + own, 0);
      if (ours <= theirs || ours - theirs > most) return sides;
      return sides.map((text) => withoutLines(text, REFUSED)) as unknown as Sides;
    },
  },
  {
    id: 'throw-undefined',
    reason: 'the try fails here; there the job stays active until it stalls, and its worker emits an error of its own',
    without: (sides, about, context) => (tellsOfStuck(sides, about, context, ['null', 'undefined']) ? SAME : sides),
  },
  {
    id: 'error-message-no-text',
    reason: 'as above, where the message is null',
    without: (sides, about, context) =>
      tellsOfStuck(sides, about, context, ['null', 'undefined', 'nullMessage']) ? SAME : sides,
  },
  {
    id: 'backoff-no-number',
    reason: 'the job is active until it stalls here, and in no state there; the error there is that of a script',
    without: ([theirs, ours], { path, job, field }, { program, bullmq }) => {
      if (path === 'workers.errors') {
        const [script, strategy] = [
          /attempt to compare number with nil script/,
          /^Backoff strategy custom gave a delay/,
        ];
        if (linesOf(theirs, script) !== linesOf(ours, strategy)) return [theirs, ours];
        return [withoutLines(theirs, script), withoutLines(ours, strategy)];
      }
      if (!job || !strategiesOf(program, queueOf(job, program)).includes('soon')) return [theirs, ours];
      if (bullmq.jobs[job]?.state !== 'unknown') return [theirs, ours];
      if (field === 'state') return ours === 'active' ? SAME : [theirs, ours];
      return ours.startsWith(theirs) ? SAME : [theirs, ours];
    },
  },
  {
    id: 'thrown-without-message',
    reason: 'failedReason is empty here, and there the text `null`, or that of an earlier failure',
    without: ([theirs, ours], { job = '', field }, { program, bullmq }) => {
      const plan = planOf(job, program);
      if (!throws(plan, WITHOUT_MESSAGE)) return [theirs, ours];
      if (field === 'failedReason' && ours === 'undefined') {
        const told = (plan?.script ?? []).flat().flatMap((action) => {
          if (action.do !== 'throw') return [];
          const text = action.text ?? action.what;
          const what = thrown(action.what, text, Error);
          return [text, messageOf(what), ...storedMessageOf(what)];
        });
        // or of a call that was refused
        const failures = (bullmq.jobs[job]?.workerEvents ?? []).flatMap(
          (event) => /^failed made \d+ (.*) prev=/.exec(event)?.[1] ?? [],
        );
        return ['null', ...told, ...failures].map(shown).includes(theirs) ? SAME : [theirs, ours];
      }
      if (field !== 'events') return [theirs, ours];
      return [theirs.replaceAll('failedReason="null"', 'failedReason=""'), ours];
    },
  },
  {
    id: 'job-option-number-texts',
    reason: '`delay` and `attempts` are numbers here, and the job waits for its delay, which there starts at once',
    without: ([theirs, ours], { job, field }, { program }) => {
      const opts = (job !== undefined && planOf(job, program)?.opts) || {};
      if (field === 'opts') {
        const text = /"(delay|attempts)":"(\d+)"/g;
        return [
          theirs.replace(text, (all, name: string, value: string) =>
            opts[name] === value ? `"${name}":${value}` : all,
          ),
          ours,
        ];
      }
      if (field !== 'events' || typeof opts.delay !== 'string') return [theirs, ours];
      return [atOnce(theirs), atOnce(ours)];
    },
  },
  {
    id: 'job-option-numbers',
    reason: 'BullMQ keeps a job with a delay of 1e300 delayed, and says of it that its delay is 1',
    without: ([theirs, ours], { job, field }, { program }) => {
      if (!job || field !== 'delay') return [theirs, ours];
      const told = JSON.stringify([planOf(job, program), strategiesOf(program, queueOf(job, program))]);
      return theirs === '"short"' && ours === '"long"' && ODD_DELAY.test(told) ? SAME : [theirs, ours];
    },
  },
  {
    id: 'jobs-taken-in-advance',
    reason: 'a worker with short handlers takes some jobs in advance; those it gives back have waited once more',
    without: ([theirs, ours], { field }) =>
      field === 'events' && ours.length > theirs.length
        ? [withoutReturns(theirs), withoutReturns(ours)]
        : [theirs, ours],
  },
  {
    id: 'delay-after-promote-jobs',
    reason: '`job.delay` is 0 afterwards here, as after `job.promote()`',
    without: ([theirs, ours], { job, field }, { program }) =>
      job &&
      field === 'delay' &&
      theirs === '"long"' &&
      ours === '"short"' &&
      calls(program, queueOf(job, program), 'promoteJobs')
        ? SAME
        : [theirs, ours],
  },
  {
    id: 'upsert-of-a-promoted-slot',
    reason:
      'one that was promoted runs, or has run, under the id of the next one: BullMQ has one job in two states then',
    without: ([theirs, ours], about, context) =>
      tellsOfTwoStates([theirs, ours], about, context) ? SAME : [theirs, ours],
  },
  {
    id: 'drain-and-obliterate-flows',
    reason:
      "a scheduler's job that waits stays in the waiting list here; in BullMQ a job that was drained may take its place",
    without: (sides, about, context) => (tellsOfGhost(about, context) ? SAME : sides),
  },
];

export function isWanted({ path, bullmq, chasquimq }: Difference, context: Context): boolean {
  const [, job, field] = /^jobs\.(.*)\.(\w+)$/.exec(path.replace('.fields.', '.')) ?? [];
  const about: About = { path, ...(job !== undefined && { job, field }) };
  const [theirs, ours] = WANTED.reduce<Sides>((sides, row) => row.without(sides, about, context), [bullmq, chasquimq]);
  return theirs === ours;
}

const linesOf = (text: string, pattern: RegExp): number => text.split('\n').filter((line) => pattern.test(line)).length;

const withoutLines = (text: string, pattern: RegExp): string =>
  text
    .split('\n')
    .filter((line) => !pattern.test(line))
    .join('\n');

/** Nor does it wait again when its children have ended. */
const atOnce = (events: string): string =>
  withoutDelays(events.split('\n'))
    .map((event) => (event === 'waiting prev="waiting-children"' ? 'waiting' : event))
    .join('\n');

/** Without the events of jobs that were taken and given back. Those of a run that moved its job are the same; its runs are compared. */
const withoutReturns = (events: string): string =>
  events.replace(/(\nactive prev="waiting")(?:\nwaiting prev="active"\nactive prev="waiting")+/g, '$1');

/** A scheduler was upserted whose slot is taken by a job that was promoted: what that upsert answers, and what follows from it in its queue. */
function tellsOfTwoStates([theirs, ours]: Sides, { path, job }: About, { program }: Context): boolean {
  const promotes = (queue: number) => calls(program, queue, 'promoteJobs');
  const upserts = [...program.steps.entries()].flatMap(([index, step]) =>
    step.do === 'schedule' && 'pattern' in step.repeat && promotes(step.queue)
      ? [{ index, queue: step.queue, id: step.id, key: step.job.key }]
      : [],
  );
  // its scheduler was there when jobs were promoted
  const late = upserts.filter(({ index, queue, id }) => {
    const before = upserts.find((other) => other.id === id && other.queue === queue);
    const promoted = program.steps.findLastIndex(
      (step, at) => at < index && step.do === 'queue' && step.queue === queue && step.method === 'promoteJobs',
    );
    return before !== undefined && before.index < promoted;
  });
  const [, at, queue] = /^steps\.(\d+) |^queues\.(\d+)\./.exec(path) ?? [];
  const step: Step | undefined = at === undefined ? undefined : program.steps[Number(at)];
  const of = queue !== undefined ? Number(queue) : step && 'queue' in step ? step.queue : undefined;
  if (of !== undefined && upserts.some((upsert) => upsert.queue === of) && isEndedCountOnly(theirs, ours)) return true;
  if (job !== undefined) return upserts.some(({ key, id }) => key === job && late.some((other) => other.id === id));
  return late.some((other) => other.queue === of && (at === undefined || Number(at) >= other.index));
}

/** Counts that differ in how many jobs have ended. */
function isEndedCountOnly(theirs: string, ours: string): boolean {
  const ends = /"(completed|failed)":\d+/g;
  return ends.test(theirs) && theirs.replace(ends, '') === ours.replace(ends, '');
}
