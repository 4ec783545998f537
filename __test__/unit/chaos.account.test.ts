// What a master takes along when it is gone is told from what is lost, the outcome of a job's last run from those of others, and a
// wait beside an idle worker from one that nobody could have ended.
import { describe, expect, it } from 'vitest';
import { settle } from '../chaos/account.js';
import type { Injected } from '../chaos/faults.js';
import type { Calm } from '../chaos/idle.js';
import type { Recorded } from '../chaos/jobs.js';
import { shortened } from '../chaos/ledger.js';
import type { Entry } from '../chaos/ledger.js';

/** A master was killed at 10,000, whose replica had heard of all that was acknowledged up to 9,990. */
const KILL: Injected = {
  kind: 'kill-master',
  target: 'all',
  life: 0,
  at: 9_990,
  heard: 9_990,
  gone: 10_000,
  returned: 15_000,
  mixed: false,
  detail: '',
};

/** The lines of a job that ran from one time to another. */
const ran = (key: string, kind: string, from: number, to: number): string[] => [
  `9000 sent ${key} ${kind} removed -`,
  `9001 acked ${key} ${key}`,
  `${from} started ${key} ${key} 1 0 1.${key}`,
  `${to} ended ${key} 1.${key} returned`,
];

function accountOf(
  lines: readonly string[],
  ends: readonly [id: string, key: string][],
  heardAlso: readonly string[] = [],
  { failed, moves = [] }: { failed?: string; moves?: readonly string[] } = {},
) {
  const entries = lines.map((line): Entry => {
    const [at, event = '', ...words] = line.split(' ');
    return { at: Number(at), event, by: 'w1.0', words };
  });
  const recorded: Recorded[] = ends.map(([id, text]) => ({ id, state: 'completed', text }));
  if (failed !== undefined) recorded.push({ id: '7', state: 'failed', text: failed });
  const kept = failed === undefined ? [] : [{ ...recorded.at(-1)!, key: 'a', attemptsMade: 1 }];
  const observed = [...recorded, ...heardAlso.map((id) => ({ id, state: 'completed' as const, text: '' }))];
  const faults = [KILL];
  const { unheard, wrong } = settle({
    entries,
    faults,
    standstills: [],
    recorded,
    moves: moves.map((text) => ({ id: text.split(' ')[0] ?? '', to: text.split(' ')[1] ?? '' })),
    observed,
    kept,
    left: [],
    calms: [],
  });
  return {
    unheard: unheard.length,
    wrong: Object.keys(wrong).filter((name) => wrong[name as keyof typeof wrong].length > 0),
  };
}

const sent = (key: string) => `9000 sent ${key} plain removed -`;

describe('chaos.account', () => {
  it.each([
    ['run at once is wrong', 9_105, ['crowded']],
    ['run one after the other is right', 9_110, []],
  ])('a third job of a group of which two %s', (_, from, wrong) => {
    const lines = [
      ...ran('a', 'tenant-1', 9_100, 9_110),
      ...ran('b', 'tenant-1', 9_101, 9_120),
      ...ran('c', 'tenant-1', from, 9_130),
    ];
    const others = ran('d', 'tenant-2', 9_105, 9_106);
    const ends = ['a', 'b', 'c', 'd'].map((key): [string, string] => [key, `1.${key} ${key}`]);
    expect(accountOf([...lines, ...others], ends)).toEqual({ unheard: 0, wrong });
  });

  it('a job of a group that began and ended in one millisecond ran before another that began in it', () => {
    const lines = [
      ...ran('a', 'tenant-1', 9_100, 9_120),
      ...ran('b', 'tenant-1', 9_105, 9_110),
      ...ran('c', 'tenant-1', 9_105, 9_105),
    ];
    const ends = ['a', 'b', 'c'].map((key): [string, string] => [key, `1.${key} ${key}`]);
    expect(accountOf(lines, ends)).toEqual({ unheard: 0, wrong: [] });
  });

  it.each([
    ['before one of the two is left is wrong', 'b active', ['crowded']],
    ['once one of the two waits again is right', 'b waiting', []],
  ])('a third job of a group that the event log says is active %s', (_, before, wrong) => {
    const lines = [
      ...ran('a', 'tenant-1', 9_100, 9_101),
      ...ran('b', 'tenant-1', 9_102, 9_103),
      ...ran('c', 'tenant-1', 9_104, 9_105),
    ];
    const ends = ['a', 'b', 'c'].map((key): [string, string] => [key, `1.${key} ${key}`]);
    expect(accountOf(lines, ends, [], { moves: ['a active', 'b active', before, 'c active'] })).toEqual({
      unheard: 0,
      wrong,
    });
  });

  it.each<[string, number, { unheard: number; wrong: string[] }]>([
    ['before its replica had heard everything is lost', 9_989, { unheard: 0, wrong: ['lost'] }],
    ['after that is unheard', 9_991, { unheard: 1, wrong: [] }],
    ['by its successor is lost', 15_001, { unheard: 0, wrong: ['lost'] }],
  ])('a job that a master acknowledged %s', (_, at, expected) => {
    expect(accountOf([sent('a'), `${at} acked a 7`], [])).toEqual(expected);
  });

  it('a number that a master took along is given again', () => {
    const lines = [
      sent('a'),
      sent('b'),
      '9995 acked a 7',
      '9996 started a 7 0 0 1.a',
      '15001 acked b 7',
      '15002 started b 7 0 0 1.b',
      '15002 ended b 1.b returned',
    ];
    expect(accountOf([...lines, '9997 completed a', '15003 completed b'], [['7', '1.b b']], ['7'])).toEqual({
      unheard: 1,
      wrong: [],
    });
  });

  it('a parent that is to fail with its child fails without a run', () => {
    const doomed = '9000 sent a doomed kept -';
    const settled = (state: 'completed' | 'failed', text: string, lines: readonly string[] = ['9100 acked a 7']) => {
      const entries = [doomed, ...lines].map((line): Entry => {
        const [at, event = '', ...words] = line.split(' ');
        return { at: Number(at), event, by: 'w1.0', words };
      });
      const recorded = [{ id: '7', state, text }];
      const kept = [{ id: '7', key: 'a', state, text, attemptsMade: 1 }];
      const evidence = {
        entries,
        faults: [],
        standstills: [],
        recorded,
        moves: [],
        observed: recorded,
        kept,
        left: [],
        calms: [],
      };
      return Object.values(settle(evidence).wrong).flat().length;
    };
    const failed = 'child bull:chaos:9 failed';
    expect(settled('failed', failed)).toBe(0);
    // its producer was killed before it heard the id; the one that had it before went with a master
    expect(settled('failed', failed, [])).toBe(0);
    const before = '9000 sent b plain kept -';
    expect(settled('failed', failed, [before, '9995 acked b 7'])).toBe(1);
    expect(settled('completed', '1.x 0  a', ['9200 started a 7 0 - 1.x', '9201 ended a 1.x returned'])).toBe(1);
    expect(settled('failed', failed, ['9200 started a 7 0 - 1.x'])).toBe(1);
  });

  it('a job whose end nobody else had heard of ends again', () => {
    const told = [
      '9000 acked a 7',
      '9994 started a 7 0 0 1.a',
      '9996 completed a',
      '15001 started a 7 0 0 1.b',
      '15002 completed a',
    ];
    expect(accountOf([sent('a'), ...told], [['7', '1.b a']], ['7'])).toEqual({ unheard: 0, wrong: [] });
    const later = told.map((line) => line.replace('9996', '9980').replace('9994', '9979'));
    expect(accountOf([sent('a'), ...later], [['7', '1.b a']], ['7']).wrong).toContain('toldTwice');
  });

  it('an end whose answer went with a master may be heard from its successor, too', () => {
    const lines = (ended: number, told: number) => [
      sent('a'),
      '9000 acked a 7',
      '9100 started a 7 0 - 1.x',
      `${ended} ended a 1.x returned`,
      `${told} completed a`,
    ];
    const ends: [string, string][] = [['7', '1.x a']];
    expect(accountOf(lines(9_980, 15_001), ends, ['7']).wrong).toEqual([]);
    expect(accountOf(lines(9_980, 9_985), ends, ['7']).wrong).toEqual(['heardTwiceByObserver']);
    expect(accountOf(lines(15_001, 15_002), ends, ['7']).wrong).toEqual(['heardTwiceByObserver']);
  });

  const acked = ['20000 acked a 7', '20001 started a 7 0 - 1.x'];
  const again = ['20003 started a 7 0 - 2.y', '20004 ended a 2.y returned'];
  it.each<[string, string[], string, string[]]>([
    ['that was its only one', ['20002 ended a 1.x returned'], '1.x', []],
    ['that nobody knows', ['20002 ended a 1.x returned'], '1.z', ['wrongRun']],
    ['that threw', ['20002 ended a 1.x threw'], '1.x', ['wrongRun']],
    ['that gave it back', ['20002 moved a 1.x', '20002 ended a 1.x returned'], '1.x', ['wrongRun']],
    ['behind one that gave it back', ['20002 parting a 1.x', '20002 moved a 1.x', ...again], '2.y', []],
    ['before one that took it', ['20002 parting a 1.x', '20005 ended a 1.x returned', ...again], '1.x', ['wrongRun']],
    ['behind one that did not give it back', again, '2.y', ['unexplainedRepeats']],
  ])('a job completed by a run %s', (_, lines, mark, wrong) => {
    expect(accountOf([sent('a'), ...acked, ...lines], [['7', `${mark} a`]]).wrong).toEqual(wrong);
  });

  it.each<[string, string, string[], string, string[]]>([
    ['expired', 'fails without a run', [], 'job expired before it started', []],
    ['expired', 'runs', ['20001 started a 7 0 - 1.x'], 'job expired before it started', ['ranInVain']],
    ['brief', 'runs in time', ['20001 started a 7 0 - 1.x', '20002 ended a 1.x threw'], 'boom 1.x a', []],
    ['cancelled', 'fails without a run', ['20001 cancelled a cancelled'], 'The job was cancelled: a', []],
    ['cancelled', 'fails otherwise', ['20001 cancelled a cancelled'], 'boom 1.x a', ['ranInVain']],
    [
      'cancelled',
      'runs afterwards',
      ['20001 cancelled a cancelled', '20002 started a 7 0 - 1.x'],
      'The job was cancelled: a',
      ['ranInVain'],
    ],
    [
      'cancelled',
      'ran, and came back',
      ['20000 started a 7 0 - 1.x', '20001 cancelled a signalled'],
      'The job was cancelled: a',
      [],
    ],
  ])('a job that is %s %s', (kind, _, lines, text, wrong) => {
    expect(
      accountOf([`9000 sent a ${kind} kept -`, '20000 acked a 7', ...lines], [], [], { failed: text }).wrong,
    ).toEqual(wrong);
  });

  it('a result is known by the mark that fills it', () => {
    expect(shortened('1.x 5 1.x1. a')).toBe('1.x a');
    expect(shortened('1.x 5 1.y1. a')).toMatch(/^torn/);
    expect(shortened('1.x 5 1.x1 a')).toMatch(/^torn/);
    expect(shortened('1.x 0  a')).toBe('1.x a');
  });

  describe('in a calm time, a job that waits for a second', () => {
    const calm: Calm = {
      from: 8_000,
      to: 12_000,
      workers: ['w1.0', 'w2.0'].map((signature) => ({ signature, concurrency: 1, slots: 1 })),
      late: [],
      pace: 1,
    };
    const lines = [
      'p1.0 9000 sent a mixed kept -',
      'p1.0 9001 acked a 1',
      'p1.0 9000 sent b mixed kept -',
      'p1.0 9001 acked b 2',
      'w1.0 9002 started a 1 0 0 1.a',
      'w1.0 10002 ended a 1.a returned',
      'w1.0 10003 started b 2 0 0 1.b',
      'w1.0 10004 ended b 1.b returned',
      'w1.0 10005 late 9000 10005',
    ];
    const neglected = (more: readonly string[], about: Partial<Calm>) => {
      const entries = [...lines, ...more].map((line): Entry => {
        const [by = '', at, event = '', ...words] = line.split(' ');
        return { at: Number(at), event, by, words };
      });
      const nothing = { faults: [], standstills: [], recorded: [], moves: [], observed: [], kept: [], left: [] };
      return settle({ entries, ...nothing, calms: [{ ...calm, ...about }] }).wrong.neglected.length;
    };

    it('beside an idle worker is found', () => {
      expect(neglected([], {})).toBe(1);
    });

    it.each<[string, readonly string[], Partial<Calm>]>([
      ['while the other worker is busy', ['w2.0 8999 started c 3 0 0 1.c', 'w2.0 9990 ended c 1.c returned'], {}],
      ['while its loop is blocked', ['w2.0 9990 late 8990 9990'], {}],
      ['while the way to the server is', [], { late: [{ from: 8_990, to: 9_990 }] }],
      [
        'while a job limits the queue',
        ['p1.0 9000 sent d limited kept -', 'w2.0 9001 started d 4 0 - 1.d', 'w2.0 9900 ended d 1.d threw'],
        {},
      ],
      ['on a machine that is slow', [], { pace: 25 }],
      ['when the time was over', [], { to: 8_500 }],
      ['for a worker that starts a sandbox', [], { workers: calm.workers.slice(1) }],
    ])("%s is nobody's fault", (_, more, about) => {
      expect(neglected(more, about)).toBe(0);
    });
  });
});
