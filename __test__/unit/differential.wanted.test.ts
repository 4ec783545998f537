// Pins that the differential test lets pass what the list of wanted differences names, and no more.
import { describe, expect, it } from 'vitest';
import { differences } from '../../src/tools/doctor/differences.js';
import { compare } from '../differential/compare.js';
import type { Action, JobPlan, Observation, Program, SeenJob, Step, WorkerPlan } from '../differential/program.js';
import { shown } from '../differential/values.js';
import { WANTED } from '../differential/wanted.js';

describe('each wanted row', () => {
  it.each([...new Set(WANTED.map(({ id }) => id))])('is one of the wanted differences: %s', (id) => {
    expect(differences.map((each) => each.id)).toContain(id);
  });
});

const NULL: Action = { do: 'throw', what: 'null' };
const job = (more: Partial<SeenJob> = {}): SeenJob => ({
  ...{ id: '1', state: 'failed', fields: {}, runs: ['made 0'], events: ['added', 'waiting', 'active prev="waiting"'] },
  ...{ workerEvents: [], ...more },
});
const seen = (jobs: Record<string, SeenJob>, more: Partial<Observation> = {}): Observation => ({
  ...{ jobs, queues: [], steps: {}, workers: [], unhandled: [], ...more },
});

/** The kinds of differences of a program with these jobs in one queue that are not wanted, by path. */
function left(
  plans: readonly JobPlan[],
  [bullmq, chasquimq]: readonly [Observation, Observation],
  steps: readonly Step[] = [],
  worker: Partial<WorkerPlan> = {},
): string[] {
  const add: Step = { do: 'add', queue: 0, how: 'one', jobs: plans };
  const workers: WorkerPlan[] = [{ queue: 0, kind: 'function', concurrency: 1, ...worker }];
  const program: Program = { name: 'p', queues: 1, workers, steps: [add, ...steps] };
  return compare(program, bullmq, chasquimq).map(({ path }) => path);
}

const errors = (...list: string[]) => ({ workers: [{ errors: list, closed: 'closed' }] });
const more = (...events: string[]) => [...job().events, ...events];

describe('a handler that throws null', () => {
  const plans = [{ key: 'j1', script: [[NULL]] }, { key: 'j2' }];
  const active = job({ state: 'active' });
  const failed = job({ events: more('failed failedReason="" prev="active"') });

  it('may leave its job active in BullMQ', () => {
    const sides = [seen({ j1: active }, errors('a TypeError of JavaScript')), seen({ j1: failed }, errors())] as const;
    expect(left(plans, sides)).toEqual([]);
  });

  it('says nothing of another job', () => {
    expect(left(plans, [seen({ j1: active, j2: active }), seen({ j1: failed, j2: failed })])).toEqual([
      'jobs.j2.state',
      'jobs.j2.events',
    ]);
  });

  it('says nothing of what was before that run', () => {
    const before = job({ state: 'active', runs: ['made 1'] });
    expect(left(plans, [seen({ j1: before }), seen({ j1: failed })])).toEqual([
      'jobs.j1.state',
      'jobs.j1.runs',
      'jobs.j1.events',
    ]);
  });

  it('says nothing of a job that goes on in BullMQ', () => {
    const gone = job({ state: 'completed', events: more('completed') });
    expect(left(plans, [seen({ j1: gone }), seen({ j1: failed })])).toEqual(['jobs.j1.state', 'jobs.j1.events']);
  });

  it('explains one error of BullMQ, and none of ours', () => {
    const one = 'a TypeError of JavaScript';
    expect(left(plans, [seen({ j1: active }, errors(one, one)), seen({ j1: failed })])).toContain('workers.errors');
    expect(left(plans, [seen({ j1: active }), seen({ j1: failed }, errors(one))])).toContain('workers.errors');
    expect(left(plans, [seen({ j1: active }, errors('odd')), seen({ j1: failed })])).toContain('workers.errors');
  });

  it('may have a strategy that gives no number here, once for each such job', () => {
    const told = 'Backoff strategy custom gave a delay that is no number';
    const theirs = seen({ j1: active }, errors('a TypeError of JavaScript'));
    const worker = { strategy: ['soon'] };
    expect(left(plans, [theirs, seen({ j1: active }, errors(told))], [], worker)).toEqual([]);
    expect(left(plans, [theirs, seen({ j1: active }, errors(told, told))], [], worker)).toContain('workers.errors');
    expect(left(plans, [theirs, seen({ j1: active }, errors(told))])).toContain('workers.errors');
  });

  it('explains what counts jobs, and nothing else of its queue', () => {
    const call = (method: string): Step => ({ do: 'queue', queue: 0, method, args: [] });
    const steps = [call('getJobCounts'), call('isPaused')];
    const answers = (text: string) => ({ steps: { '1 queue getJobCounts': text, '2 queue isPaused': text } });
    const sides = [seen({ j1: active }, answers('one')), seen({ j1: failed }, answers('two'))] as const;
    expect(left(plans, sides, steps)).toEqual(['steps.2 queue isPaused']);
  });
});

describe('refusals', () => {
  const refused = 'Missing lock for job <id>. moveToFinished';
  const of = (theirs: string[], ours: string[]) =>
    left([{ key: 'j1' }], [seen({ j1: job() }, errors(...theirs)), seen({ j1: job() }, errors(...ours))]);

  it('are told once for each that BullMQ tells once or twice', () => {
    expect(of([refused, refused, refused], [refused, refused])).toEqual([]);
  });

  it('may be untold there of each job of a worker that closes', () => {
    const refusals = (times: number) => seen({ j1: job() }, errors(...Array<string>(times).fill(refused)));
    const of = (theirs: number, ours: number, steps: Step[]) =>
      left([{ key: 'j1' }], [refusals(theirs), refusals(ours)], steps, { concurrency: 2 });
    expect(of(0, 2, [{ do: 'stop', worker: 0 }])).toEqual([]);
    expect(of(0, 3, [{ do: 'stop', worker: 0 }])).toEqual(['workers.errors']);
    expect(of(0, 1, [{ do: 'start', worker: 0 }])).toEqual(['workers.errors']);
  });

  it('are neither fewer nor many more', () => {
    expect(of([refused, refused, refused], [refused])).toEqual(['workers.errors']);
    expect(of([refused], [refused, refused])).toEqual(['workers.errors']);
    expect(of([refused], [])).toEqual(['workers.errors']);
  });
});

describe('options', () => {
  const of = (plan: Partial<JobPlan>, theirs: string, ours: string, field = 'opts') =>
    left(
      [{ key: 'j1', ...plan }],
      [seen({ j1: job({ fields: { [field]: theirs } }) }), seen({ j1: job({ fields: { [field]: ours } }) })],
    );

  it('that are texts are numbers here', () => {
    expect(of({ opts: { attempts: '3' } }, '{"attempts":"3"}', '{"attempts":3}')).toEqual([]);
    expect(of({ opts: { attempts: '3' } }, '{"attempts":"3"}', '{"attempts":4}')).toEqual(['jobs.j1.fields.opts']);
    expect(of({}, '{"attempts":"3"}', '{"attempts":3}')).toEqual(['jobs.j1.fields.opts']);
  });

  it('with a delay beyond all measure are said to be short in BullMQ', () => {
    const odd = { opts: { delay: { $: 'number:1e300' } } };
    expect(of(odd, '"short"', '"long"', 'delay')).toEqual([]);
    expect(of({ opts: { delay: 20 } }, '"short"', '"long"', 'delay')).toEqual(['jobs.j1.fields.delay']);
  });
});

describe('a strategy that gives a text', () => {
  const lost = job({ state: 'unknown' });
  const held = job({ state: 'active' });
  const script = 'ERR user_script:1: attempt to compare number with nil script: 1';
  const ours = 'Backoff strategy custom gave a delay that is no number';
  const sides = [seen({ j1: lost }, errors(script)), seen({ j1: held }, errors(ours))] as const;

  it('loses the job in BullMQ', () => {
    expect(left([{ key: 'j1' }], sides, [], { strategy: ['soon'] })).toEqual([]);
  });

  it('is the only one that does', () => {
    expect(left([{ key: 'j1' }], sides, [], { strategy: [10] })).toEqual(['jobs.j1.state']);
  });
});

describe('a handler that throws what has no message', () => {
  const reason = (failedReason: string) => seen({ j1: job({ fields: { failedReason } }) });
  const of = (first: Action, theirs: unknown) => {
    const script = [[first], [{ do: 'throw', what: 'function' } as const]];
    return left([{ key: 'j1', script }], [reason(shown(theirs)), reason('undefined')]);
  };

  it('may leave the message of an earlier failure in BullMQ, however long, and no other', () => {
    const long: Action = { do: 'throw', what: 'longMessage', text: 'ab' };
    expect(of(long, 'ab'.repeat(5_000))).toEqual([]);
    expect(of(long, 'ac'.repeat(5_000))).toEqual(['jobs.j1.fields.failedReason']);
    expect(of({ do: 'throw', what: 'error', text: 'boom' }, 'boom')).toEqual([]);
  });
});

describe('a queue with a scheduler that is drained', () => {
  const schedule: Step = { do: 'schedule', queue: 0, id: 'one', repeat: { every: 40, limit: 2 }, job: { key: 'j2' } };
  const call = (method: string): Step => ({ do: 'queue', queue: 0, method, args: [] });
  const plans = [{ key: 'j1' }, { key: 'j3' }];
  const ran = job({ state: 'completed', events: more('completed prev="active" returnvalue="done undefined"') });
  const answers = (count: number) => ({ steps: { '3 queue getJobSchedulers': `"iterationCount":${count}` } });
  const waits = job({ state: 'gone', events: ['added', 'waiting'] });
  const steps = [schedule, call('drain'), call('getJobSchedulers')];

  it('may run a job without a name in BullMQ, and no more of the scheduler', () => {
    const theirs = seen({ j1: ran, j2: waits, undefined: job({ runs: ['made 0'] }) }, answers(1));
    const ours = seen({ j1: waits, j2: job() }, answers(2));
    expect(left(plans, [theirs, ours], steps)).toEqual([]);
  });

  it('says nothing of other jobs, nor of ours without a name', () => {
    const nameless = job({ runs: ['made 0'] });
    expect(left(plans, [seen({ j3: ran, undefined: nameless }), seen({ j3: ran, j1: ran })], steps)).toContain(
      'jobs.j1.state',
    );
    const both = [seen({ j2: waits, undefined: nameless }), seen({ j2: job(), undefined: nameless })] as const;
    expect(left(plans, both, steps)).toContain('jobs.j2.state');
    const undrained = [seen({ j2: waits, undefined: nameless }), seen({ j2: job() })] as const;
    expect(left(plans, undrained, [schedule])).toContain('jobs.j2.state');
  });
});

describe('a pattern that is upserted after its job was promoted', () => {
  const schedule = (key: string): Step => ({
    ...{ do: 'schedule', queue: 0, id: 'one', repeat: { pattern: '0 0 1 1 *' } },
    job: { key },
  });
  const promote: Step = { do: 'queue', queue: 0, method: 'promoteJobs', args: [] };
  const plans = [{ key: 'j3' }];
  const ran = job({ events: more('completed prev="active" returnvalue="done j1"') });
  const sides = [seen({ j1: job(), j2: ran }), seen({ j1: ran, j2: job() })] as const;

  it('may have the id of that job in BullMQ, which has another one here', () => {
    expect(left(plans, sides, [schedule('j1'), promote, schedule('j2')])).toEqual([]);
  });

  it('says nothing of what was upserted before, nor of other jobs', () => {
    const both = ['jobs.j1.events', 'jobs.j2.events'];
    expect(left(plans, sides, [schedule('j1'), schedule('j2'), promote])).toEqual(both);
    expect(left(plans, sides, [promote, schedule('j1'), schedule('j2')])).toEqual(both);
    const others = [seen({ j3: job() }), seen({ j3: ran })] as const;
    expect(left(plans, others, [schedule('j1'), promote, schedule('j2')])).toEqual(['jobs.j3.events']);
  });
});
