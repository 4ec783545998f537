/** The wanted differences (README, "Wanted differences") that programs meet, each with its reason. */
import type { Difference } from './compare.js';
import type { Thrown } from './values.js';
import type { Action, JobPlan, Observation, Program, Step } from './program.js';

export interface Context {
  readonly program: Program;
  readonly bullmq: Observation;
  readonly chasquimq: Observation;
  /** Everything in which they differ. */
  readonly all: readonly Difference[];
}

interface Wanted {
  /** The row of the table in the README. */
  readonly row: string;
  readonly reason: string;
  applies(difference: Difference, context: Context): boolean;
}

export const WANTED: readonly Wanted[] = [
  {
    row: 'Errors of a worker',
    reason: 'of a frozen job that throws what cannot be read, either fault is the one that is told',
    applies: ({ path, bullmq, chasquimq }, { program }) => {
      const told = /^(a TypeError of JavaScript|(stack|message|name) is not to be read)$/;
      const [theirs, ours] = [bullmq, chasquimq].map((lines) => lines.split('\n').filter((line) => !told.test(line)));
      const isSuch = (plan: JobPlan) =>
        (plan.script ?? []).flat().some((action) => action.do === 'setOpts') &&
        throws(plan, ['stackGetter', 'messageGetter', 'nameGetter']);
      return path === 'workers.errors' && theirs.join('\n') === ours.join('\n') && plansOf(program).some(isSuch);
    },
  },
  {
    row: 'A processor that has moved its job, and returns',
    reason:
      'BullMQ emits the error of a refused completion, and that of a failure (or retry) it then tries: numbers are not compared',
    applies: ({ path, bullmq, chasquimq }) =>
      path.endsWith('.errors') && distinct(withoutSecond(bullmq, chasquimq)) === distinct(chasquimq),
  },
  {
    row: '`throw undefined`, `throw null`',
    reason: 'the job fails here and stays active there; so it does with an error whose message is null',
    applies: (difference, context) => {
      const { program } = context;
      const concerned = plansAbout(difference, program);
      // in line one job's way is that of the others
      const all = program.ordered || isUnforced(context) || (concerned.length === 0 && consequence(difference));
      const candidates = all ? plansOf(program) : concerned;
      return candidates.some((plan) => throws(plan, ['null', 'undefined', 'nullMessage']));
    },
  },
  {
    row: 'Other thrown values without a message',
    reason: 'failedReason is empty here, and there the text `null`, or that of an earlier failure',
    applies: (difference, { program }) => {
      const { path, bullmq, chasquimq } = difference;
      if (!/\.(failedReason|events|stacktraceHead|workerEvents)$/.test(path)) return false;
      const isOlder =
        path.endsWith('.failedReason') &&
        chasquimq === 'undefined' &&
        plansAbout(difference, program).some((plan) => throws(plan, ['text', 'number', 'function']));
      return isOlder || withoutReason(bullmq) === withoutReason(chasquimq);
    },
  },
  {
    row: 'Texts that are numbers in job options',
    reason: 'the job waits for its delay here, and starts at once there',
    applies: (difference, { program }) => {
      const [job] = plansAbout(difference, program);
      return ['delay', 'attempts', 'timestamp'].some((name) => typeof job?.opts?.[name] === 'string');
    },
  },
  {
    row: 'Numbers in job options',
    reason: 'a `keepLogs` below 0 is told by its name; BullMQ tells of a job that is missing',
    applies: ({ bullmq, chasquimq }) =>
      bullmq.replaceAll(/(Error: )?Missing key for job \S+ addLog/g, 'NO') ===
      chasquimq.replaceAll(/(RangeError: )?keepLogs must be a whole number of at least 0/g, 'NO'),
  },
  {
    row: 'Numbers in job options',
    reason: 'BullMQ keeps a job with a delay of 1e300 delayed, and says of it that its delay is 1',
    applies: ({ path, bullmq, chasquimq }) => path.endsWith('.delay') && bullmq === '"short"' && chasquimq === '"long"',
  },
  {
    row: 'Events of a worker',
    reason: 'a worker with short handlers takes some jobs in advance; those it gives back have waited once more',
    applies: ({ path, bullmq, chasquimq }) =>
      path.endsWith('.events') && withoutReturns(chasquimq) === withoutReturns(bullmq),
  },
  {
    row: '`promoteJobs`, and parents whose last child is removed',
    reason: '`job.delay` is 0 afterwards here, as after `job.promote()`',
    applies: ({ path, bullmq, chasquimq }, { program }) =>
      path.endsWith('.delay') && bullmq === '"long"' && chasquimq === '"short"' && calls(program, 'promoteJobs'),
  },
  {
    row: 'A scheduler whose next iteration has the id of a job',
    reason:
      'one that was promoted before its time runs, or has run, under that id: BullMQ has one job in two states then; here it is refused while it runs, as in BullMQ where no other iteration is pending, and replaced once it has ended',
    applies: ({ path, bullmq, chasquimq: ours }, { program, chasquimq, bullmq: theirs }) => {
      const scheduled = program.steps.flatMap((step) => (step.do === 'schedule' ? [step.job.key] : []));
      if (scheduled.length === 0 || !calls(program, 'promoteJobs')) return false;
      const ends = /"(completed|failed)":\d+/g;
      if (/counts$|getJobCounts$/i.test(path) && bullmq.replace(ends, '') === ours.replace(ends, '')) return true;
      const refused = Object.entries(chasquimq.steps).some(
        ([step, answer]) => /job ID already exists/.test(answer) && theirs.steps[step] !== answer,
      );
      return refused && (/^(steps|queues)\./.test(path) || scheduled.some((key) => path.startsWith(`jobs.${key}.`)));
    },
  },
];

const calls = (program: Program, method: string): boolean =>
  program.steps.some((step) => step.do === 'queue' && step.method === method);

export function isWanted(difference: Difference, context: Context): boolean {
  return WANTED.some((row) => row.applies(difference, context));
}

/** BullMQ's errors without those of a second try that was refused. */
const withoutSecond = (bullmq: string, chasquimq: string): string => {
  const refused = /^(Missing lock|Lock mismatch|Missing key) /m;
  if (!refused.test(chasquimq)) return bullmq;
  return bullmq
    .split('\n')
    .filter((line) => !refused.test(line) || chasquimq.includes(line))
    .join('\n');
};

/** Without the events of jobs that were taken and given back. Those of a run that moved its job are the same; its runs are compared. */
const withoutReturns = (events: string): string =>
  events.replace(/(\nactive prev="waiting")(?:\nwaiting prev="active"\nactive prev="waiting")+/g, '$1');

const distinct = (lines: string): string => [...new Set(lines.split('\n'))].sort().join('\n');

const withoutReason = (text: string): string =>
  text
    .replaceAll('failedReason="null"', 'failedReason=""')
    .replace(/^"null"$/, 'undefined')
    .replace(/^"Error: null"$/, '');

/** What tells of a job that took another way, without being the job's. */
function consequence({ path }: Difference): boolean {
  return /\.errors$|\.counts$|^steps\./.test(path);
}

/** A job that stays active keeps its queue from being obliterated, with all that is in it. */
function isUnforced({ bullmq, chasquimq }: Context): boolean {
  const refused = (answer?: string) => answer?.includes('Cannot obliterate queue with active jobs');
  return Object.entries(bullmq.steps).some(([step, answer]) => refused(answer) && !refused(chasquimq.steps[step]));
}

/** The plan of the job that this difference is about, and those of the jobs that added it. */
function plansAbout({ path }: Difference, program: Program): JobPlan[] {
  const [, name = ''] = /^jobs\.(.*)\.(?:fields\.)?\w+$/.exec(path) ?? [];
  const keys = name.split('/').map((part) => part.split(/[#.]/)[0]);
  return plansOf(program)
    .filter(({ key }) => keys.includes(key))
    .toSorted((a, b) => keys.indexOf(b.key) - keys.indexOf(a.key));
}

const throws = ({ script = [] }: JobPlan, what: readonly Thrown[]): boolean =>
  script.flat().some((action) => action.do === 'throw' && what.includes(action.what));

export function plansOf(program: Program): JobPlan[] {
  const plansIn = (step: Step) => (step.do === 'add' ? step.jobs : step.do === 'schedule' ? [step.job] : []);
  return program.steps.flatMap((step) => plansIn(step).flatMap(plansBelow));
}

function plansBelow(plan: JobPlan): JobPlan[] {
  const added = (plan.script ?? [])
    .flat()
    .flatMap((action: Action) => (action.do === 'waitForChildren' ? action.jobs : []));
  return [plan, ...[...(plan.children ?? []), ...added].flatMap(plansBelow)];
}
