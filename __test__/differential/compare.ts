/** Two observations of one program, held against each other. */
import type { Observation, Program, SeenJob } from './program.js';
import { isWanted } from './wanted.js';

export interface Difference {
  /** `jobs.a#3.state`. */
  readonly path: string;
  /** The same for all jobs and steps: by it differences are told apart, and found again in a smaller program. */
  readonly kind: string;
  readonly bullmq: string;
  readonly chasquimq: string;
}

const NEGLECTS = 'neglects';
/** Of what they tell one run is proof. */
export const LONG_NEGLECTS = 'neglects.long';

/** All differences, but for those that are wanted; the gravest first. */
export function compare(program: Program, bullmq: Observation, chasquimq: Observation): Difference[] {
  const all = differences(bullmq, chasquimq);
  return all.filter((difference) => !isWanted(difference, { program, bullmq, chasquimq }));
}

function differences(bullmq: Observation, chasquimq: Observation): Difference[] {
  if (bullmq.died !== undefined || chasquimq.died !== undefined)
    return [difference('died', bullmq.died ?? 'no', chasquimq.died ?? 'no')];
  const jobs = jobDifferences(bullmq, chasquimq);
  const ours = flatten(chasquimq);
  // how many jobs there are in a state, and that it came to rest, follows from what the jobs did
  const [others, consequences] = split(
    [...flatten(bullmq)]
      .filter(([path, value]) => value !== ours.get(path))
      .map(([path, value]) => difference(path, value, ours.get(path) ?? 'nothing')),
    ({ path }) => !/\.counts$|settle$|steps\.(end|atLast)$/.test(path),
  );
  return [...others, ...jobs, ...(others.length + jobs.length > 0 ? [] : consequences)];
}

function jobDifferences(bullmq: Observation, chasquimq: Observation): Difference[] {
  const names = new Set([...Object.keys(bullmq.jobs), ...Object.keys(chasquimq.jobs)]);
  return [...names].flatMap((name) => {
    const [theirs, ours] = [bullmq.jobs[name] ?? NO_JOB, chasquimq.jobs[name] ?? NO_JOB];
    // one cause has many effects: of a job that took another way the fields say nothing more
    const compared = theirs.state === ours.state ? flattenJob : wayOf;
    const [left, right] = [compared(theirs), compared(ours)];
    return [...left]
      .filter(([what, value]) => value !== right.get(what))
      .map(([what, value]) => difference(`jobs.${name}.${what}`, value, right.get(what) ?? 'nothing'));
  });
}

const NO_JOB: SeenJob = { id: 'none', state: 'none', fields: {}, runs: [], events: [], workerEvents: [] };

function wayOf({ state, runs, events }: SeenJob): Map<string, string> {
  return new Map([
    ['state', state],
    ['runs', runs.join('\n')],
    ['events', events.join('\n')],
  ]);
}

function flattenJob({ id, fields, workerEvents, ...way }: SeenJob): Map<string, string> {
  const flat = wayOf({ id, fields, workerEvents, ...way });
  flat.set('id', id);
  // that of one run's end and that of the next one's start come in either order
  flat.set('workerEvents', workerEvents.toSorted().join('\n'));
  for (const [field, value] of Object.entries(fields)) flat.set(`fields.${field}`, value);
  return flat;
}

function flatten({ queues, steps, workers, unhandled, neglects = [], order }: Observation): Map<string, string> {
  const flat = new Map<string, string>([
    ['unhandled', unhandled.join('\n')],
    [NEGLECTS, neglects.map(({ text }) => text).join('\n')],
    [LONG_NEGLECTS, neglects.flatMap(({ text, isLong }) => (isLong ? [text] : [])).join('\n')],
  ]);
  workers.forEach(({ closed }, i) => flat.set(`workers.${i}.closed`, closed));
  // which of two workers of a queue has a job is a question of luck
  flat.set(
    'workers.errors',
    workers
      .flatMap(({ errors }) => errors)
      .toSorted()
      .join('\n'),
  );
  for (const [step, answer] of Object.entries(steps)) flat.set(`steps.${step}`, answer);
  if (order) flat.set('order', order.join(' '));
  queues.forEach(({ counts, events }, i) => {
    flat.set(`queues.${i}.events`, events.join('\n'));
    flat.set(`queues.${i}.counts`, counts);
  });
  return flat;
}

function difference(path: string, bullmq: string, chasquimq: string): Difference {
  const place = path
    .replace(/^jobs\..*\.(fields\.)?(\w+)$/, 'jobs.$2')
    .replace(/^steps\.\d+ /, 'steps.')
    .replace(/^(workers|queues)\.\d+/, '$1');
  // lists are told apart by their first difference
  const [theirs, ours] = [bullmq.split('\n'), chasquimq.split('\n')];
  const at = theirs.findIndex((line, i) => line !== ours[i]);
  const first = at < 0 ? theirs.length : at;
  return { path, kind: `${place}: ${kindOf(theirs[first])} -> ${kindOf(ours[first])}`, bullmq, chasquimq };
}

/** A value without names and numbers. */
function kindOf(line = 'end'): string {
  return line
    .replace(/"[^"]{40,}"/g, '"..."')
    .replace(/(?<!\w)[\w#/.-]*\d[\w#/.-]*/g, 'N')
    .slice(0, 120);
}

function split<T>(list: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isFirst), list.filter((item) => !isFirst(item))];
}

/** For people. */
export function describe({ path, bullmq, chasquimq }: Difference): string {
  const indent = (text: string) => text.replaceAll('\n', '\n              ');
  return `${path}\n  bullmq      ${indent(bullmq)}\n  chasquimq   ${indent(chasquimq)}`;
}
