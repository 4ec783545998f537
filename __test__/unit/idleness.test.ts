// A job that waits beside an idle worker is found, and one that waits because nobody could have run it is not.
import { describe, expect, it } from 'vitest';
import { idleSpans, neglected, total, without } from '../support/idleness.js';
import type { JobRecord, RunRecord, Span, WorkerRecord } from '../support/idleness.js';

const ALIVE = { from: 0, to: 10_000 };

function worker(name: string, about: Partial<WorkerRecord> = {}): WorkerRecord {
  return { name, concurrency: 1, alive: ALIVE, runs: [], late: [], ...about };
}

const span = (from: number, to: number): Span => ({ from, to });
const run = (key: string, from: number, to: number): RunRecord => ({ key, from, to });
const job = (key: string, sent: number, added: number, started: number): JobRecord => ({ key, sent, added, started });

function found(jobs: readonly JobRecord[], workers: readonly WorkerRecord[], blind: readonly Span[] = []) {
  return neglected(jobs, workers, { mostMs: 50, blind });
}

/** One worker blocks its loop for a second, and holds the job that came with the one that blocks. */
const HOLDER = worker('holder', {
  runs: [run('blocks', 1_001, 2_001), run('quick', 2_001, 2_002)],
  late: [span(1_000, 2_003)],
});
const HELD = [job('blocks', 999, 1_000, 1_001), job('quick', 999, 1_000, 2_001)];

describe('idleness', () => {
  it('a job that one worker holds while another is idle is found', () => {
    expect(found(HELD, [HOLDER, worker('idle')])).toEqual([
      { key: 'quick', by: 'holder', inSlot: false, idle: 'idle', from: 1_000, to: 2_001 },
    ]);
  });

  it('so is one that nobody ever starts', () => {
    const jobs = [job('forgotten', 999, 1_000, Infinity)];
    expect(found(jobs, [worker('idle')])).toEqual([
      { key: 'forgotten', inSlot: false, idle: 'idle', from: 1_000, to: 10_000 },
    ]);
  });

  it('so is one behind which an idle worker starts others', () => {
    const later = Array.from({ length: 20 }, (_, i) => 1_010 + 40 * i);
    const other = worker('other', { runs: later.map((at) => run(`later-${at}`, at, at + 1)) });
    const jobs = [...HELD, ...later.map((at) => job(`later-${at}`, at - 2, at - 1, at))];
    expect(found(jobs, [HOLDER, other]).map(({ key }) => key)).toEqual(['quick']);
  });

  it('so is one beside a worker with one free slot of many', () => {
    const runs = Array.from({ length: 49 }, (_, i) => run(`long-${i}`, 500 + i, 3_000));
    expect(found(HELD, [HOLDER, worker('wide', { concurrency: 50, runs })])).toHaveLength(1);
  });

  it('the worker that was idle for longest is named', () => {
    const late = worker('late', { alive: span(1_500, 9_000) });
    expect(found(HELD, [HOLDER, late, worker('idle')])[0]?.idle).toBe('idle');
  });

  it.each([
    [1, 0],
    [3, 1],
    [5, 3],
  ])('of those that a worker of %i slots holds while it blocks, %i were in its slots', (concurrency, inSlot) => {
    const held = Array.from({ length: 4 }, (_, i) => `held-${i}`);
    const runs = [run('blocks', 1_001, 2_001), ...held.map((key, i) => run(key, 2_001 + i, 2_002 + i))];
    const long = concurrency > 1 ? [run('long', 500, 2_500)] : [];
    const holder = worker('holder', { concurrency, runs: [...long, ...runs], late: [span(1_000, 2_003)] });
    const jobs = [job('blocks', 999, 1_000, 1_001), ...held.map((key, i) => job(key, 999, 1_000, 2_001 + i))];
    expect(found(jobs, [holder, worker('idle')]).map((one) => one.inSlot)).toEqual(held.map((_, i) => i < inSlot));
  });

  describe('innocent is one that waits', () => {
    const innocent: Record<string, [jobs: readonly JobRecord[], workers: readonly WorkerRecord[], blind?: Span[]]> = {
      'for the only worker': [HELD, [HOLDER]],
      'while all slots are taken': [HELD, [HOLDER, worker('busy', { runs: [run('long', 500, 1_960)] })]],
      'while the loop of who has a free slot is blocked': [
        HELD,
        [HOLDER, worker('blocked', { late: [span(900, 1_960)] })],
      ],
      'while loops turn for a moment now and then': [
        HELD,
        [HOLDER, worker('slow', { late: Array.from({ length: 20 }, (_, i) => span(980 + 60 * i, 1_020 + 60 * i)) })],
      ],
      'while the server is late': [HELD, [HOLDER, worker('idle')], [span(990, 1_980)]],
      'before the other worker is there': [HELD, [HOLDER, worker('new', { alive: span(1_970, 9_000) })]],
      'after the other worker is gone': [HELD, [HOLDER, worker('gone', { alive: span(0, 1_030) })]],
      'as long as it takes to start one': [[job('quick', 999, 1_000, 1_050)], [worker('idle')]],
      'for an answer of the server to its sender': [[job('quick', 1_000, 1_960, 2_001)], [worker('idle')]],
    };
    it.each(Object.entries(innocent))('%s', (_, [jobs, workers, blind]) => {
      expect(found(jobs, workers, blind)).toEqual([]);
    });

    it('behind others that workers with free slots start one after the other', () => {
      const keys = Array.from({ length: 100 }, (_, i) => `j${i}`);
      const start = (i: number) => 1_000 + 10 * i;
      const jobs = keys.map((key, i) => job(key, 999, 1_000, start(i)));
      const runs = keys.map((key, i) => run(key, start(i), start(i) + 5));
      expect(found(jobs, [worker('saturated', { concurrency: 50, runs })])).toEqual([]);
      // who starts nothing meanwhile has no excuse
      expect(found(jobs, [worker('saturated', { concurrency: 50, runs }), worker('idle')])).toHaveLength(94);
    });

    it('behind retries and the like, which may have been there before', () => {
      const retries = Array.from({ length: 25 }, (_, i) => run('retried', 1_000 + 40 * i, 1_001 + 40 * i));
      expect(found(HELD, [HOLDER, worker('other', { runs: retries })])).toEqual([]);
    });
  });

  it('a worker is idle while it has a free slot and its loop turns', () => {
    const runs = [run('a', 100, 400), run('b', 200, 300), run('c', 300, 350)];
    const two = worker('two', { concurrency: 2, alive: span(50, 1_000), runs, late: [span(500, 600)] });
    expect(idleSpans(two)).toEqual([span(50, 200), span(350, 500), span(600, 1_000)]);
    expect(total(idleSpans(two))).toBe(700);
  });

  it('holes in spans may overlap each other, and stand out', () => {
    expect(without([span(0, 10), span(20, 30)], [span(25, 40), span(8, 22), span(2, 5), span(3, 4)])).toEqual([
      span(0, 2),
      span(5, 8),
      span(22, 25),
    ]);
  });
});
