/**
 * Jobs whose handler threw null, or an error with a message of null: the try fails here, and in BullMQ the job stays active until it stalls. Up to that
 * run both must have seen the same of it, and what follows may differ only for that job, and for what counts jobs in its queue.
 */
import { planOf, queueOf, strategiesOf } from './plans.js';
import type { Observation, Program, SeenJob } from './program.js';
import { withoutDelays } from './times.js';
import type { Thrown } from './values.js';
import type { About, Context, Sides } from './wanted.js';

/** Methods of queues whose answers, or effects, depend on how many jobs there are in which state. */
const COUNTING = /^(getJobCount|getJobs|getWaiting|isMaxed|count|clean|retryJobs|getActive|getFailed)/;
/** What is told here when a strategy gives no number. */
const NO_NUMBER = /^Backoff strategy \w+ gave a delay that is no number$/;
/** What BullMQ's worker emits for such a try: that of reading a property of null, or of a script that is given null. */
const ERROR = /^(a TypeError of JavaScript|ERR Lua redis lib command arguments must be strings or integers .*)$/;

/** The first run of the job, in BullMQ, that threw such a thing. */
export function stuckRun(name: string, { program, bullmq }: Context, what: readonly Thrown[]): number {
  const plan = planOf(name, program);
  const runs = bullmq.jobs[name]?.runs ?? [];
  return runs.findIndex((_, run) => {
    const end = plan?.script?.[run]?.find((action) => action.do === 'throw' || action.do === 'return');
    return end?.do === 'throw' && what.includes(end.what);
  });
}

export function tellsOfStuck([theirs, ours]: Sides, about: About, context: Context, what: readonly Thrown[]): boolean {
  const stuck = Object.keys(context.bullmq.jobs).filter((name) => stuckRun(name, context, what) >= 0);
  if (stuck.length === 0) return false;
  const { path, job } = about;
  if (job !== undefined)
    return stuck.includes(job) ? isAlikeUntil(job, context, what) : isChildOf(job, stuck, context, what);
  if (path === 'workers.errors') return areErrorsOf(theirs, ours, stuck, context);
  const queues = stuck.map((name) => queueOf(name, context.program));
  return isAboutQueues(path, stuck, queues, context.program);
}

/** Up to the run at which it got stuck both tell the same, and then it does nothing in BullMQ, or stalls. */
function isAlikeUntil(name: string, context: Context, what: readonly Thrown[]): boolean {
  const run = stuckRun(name, context, what);
  const [theirs, ours] = [context.bullmq.jobs[name], context.chasquimq.jobs[name]];
  if (!ours) return false;
  const runs = ({ runs }: SeenJob) => runs.slice(0, run + 1).join('\n');
  if (runs(theirs) !== runs(ours)) return false;
  // how often a job is given back unstarted, because of a rate limit that another one sets, is a question of time
  if (isRateLimited(context.program)) return true;
  // one whose delay is a text starts at once in BullMQ, which is another row
  const isLate = typeof planOf(name, context.program)?.opts?.delay === 'string';
  const [[before, after], [ourBefore, ourAfter]] = [theirs, ours].map(({ events }) =>
    cutAt(isLate ? withoutDelays(events) : events, run),
  );
  if (before !== ourBefore) return false;
  // others may tell of its progress, now or later
  const rest = after.filter((event) => !(event.startsWith('progress') && ourAfter.includes(event)));
  // or a step removes it as it is
  return (
    rest.length === 0 ||
    rest[0] === 'removed prev="active"' ||
    (rest[0] === 'waiting prev="active"' && rest[1] === 'stalled')
  );
}

function isRateLimited({ steps }: Program): boolean {
  const scripts = steps.flatMap((step) => (step.do === 'add' ? step.jobs : [])).flatMap(({ script = [] }) => script);
  return scripts.flat().some((action) => action.do === 'rateLimit');
}

/** The events up to the start of that run, and those behind it. Jobs that were given back before they ran have started once more. */
function cutAt(events: readonly string[], run: number): [string, string[]] {
  const text = events.join('\n');
  const alone = text.replace(/(\nactive prev="waiting")(?:\nwaiting prev="active"\nactive prev="waiting")+/g, '$1');
  const lines = (run === 0 ? alone : text).split('\n');
  let starts = 0;
  const at = lines.findIndex((line) => line.startsWith('active') && starts++ === run);
  return at < 0 ? [lines.join('\n'), []] : [lines.slice(0, at + 1).join('\n'), lines.slice(at + 1)];
}

/** What a job added in a run that it never had in BullMQ. */
function isChildOf(name: string, stuck: readonly string[], context: Context, what: readonly Thrown[]): boolean {
  const { bullmq } = context;
  const parent = name.split('/').slice(0, -1).join('/');
  const run = Number(/\.(\d+)$/.exec(name)?.[1] ?? 0);
  return stuck.includes(parent) && run > stuckRun(parent, context, what) + 1 && bullmq.jobs[name] === undefined;
}

/**
 * BullMQ tells one error for each try, at most; here a job that goes on may have errors in each further run (two where it has no options any more, as
 * in BullMQ), and one in this run if its strategy gives no number, which BullMQ does not get to ask.
 */
function areErrorsOf(theirs: string, ours: string, stuck: readonly string[], context: Context): boolean {
  const { program, bullmq, chasquimq } = context;
  const [more, less] = [theirs, ours].map((text) => text.split('\n').filter((line) => line !== ''));
  const drop = (list: string[], at: number) => at >= 0 && list.splice(at, 1);
  for (const line of [...less]) {
    const at = more.indexOf(line);
    if (at < 0) continue;
    drop(more, at);
    drop(less, less.indexOf(line));
  }
  for (const name of stuck) {
    if (!strategiesOf(program, queueOf(name, program)).includes('soon')) continue;
    drop(
      less,
      less.findIndex((line) => NO_NUMBER.test(line)),
    );
  }
  const runsIn = ({ jobs }: Observation) => stuck.reduce((sum, name) => sum + (jobs[name]?.runs.length ?? 0), 0);
  const [tries, all] = [runsIn(bullmq), runsIn(chasquimq)];
  return more.length <= tries && more.every((line) => ERROR.test(line)) && less.length <= 2 * Math.max(all - tries, 0);
}

function isAboutQueues(path: string, stuck: readonly string[], queues: readonly unknown[], program: Program): boolean {
  const [, number, at] = /^queues\.(\d+)\.|^steps\.(\d+) /.exec(path) ?? [];
  if (number !== undefined) return queues.includes(Number(number));
  if (/^steps\.(\d+ settle|end|atLast)$/.test(path)) return true;
  const step = program.steps[Number(at)];
  if (step?.do === 'queue') return queues.includes(step.queue) && COUNTING.test(step.method);
  return step?.do === 'job' && stuck.some((name) => name === step.key);
}
