// What a master takes along when it is gone is told from what is lost.
import { describe, expect, it } from 'vitest';
import { settle } from '../chaos/account.js';
import type { Injected } from '../chaos/faults.js';
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

function accountOf(
  lines: readonly string[],
  ends: readonly [id: string, key: string][],
  heardAlso: readonly string[] = [],
) {
  const entries = lines.map((line): Entry => {
    const [at, event = '', ...words] = line.split(' ');
    return { at: Number(at), event, by: 'w1.0', words };
  });
  const recorded = ends.map(([id, text]) => ({ id, state: 'completed' as const, text }));
  const observed = [...recorded, ...heardAlso.map((id) => ({ id, state: 'completed' as const, text: '' }))];
  const { unheard, wrong } = settle({ entries, faults: [KILL], standstills: [], recorded, observed, kept: [] });
  return {
    unheard: unheard.length,
    wrong: Object.keys(wrong).filter((name) => wrong[name as keyof typeof wrong].length > 0),
  };
}

const sent = (key: string) => `9000 sent ${key} plain removed -`;

describe('chaos.account', () => {
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
      '9996 started a 7 0',
      '15001 acked b 7',
      '15002 started b 7 0',
    ];
    expect(accountOf([...lines, '9997 completed a', '15003 completed b'], [['7', 'b']], ['7'])).toEqual({
      unheard: 1,
      wrong: [],
    });
  });

  it('a job whose end nobody else had heard of ends again', () => {
    const told = [
      '9000 acked a 7',
      '9994 started a 7 0',
      '9996 completed a',
      '15001 started a 7 0',
      '15002 completed a',
    ];
    expect(accountOf([sent('a'), ...told], [['7', 'a']], ['7'])).toEqual({ unheard: 0, wrong: [] });
    const later = told.map((line) => line.replace('9996', '9980').replace('9994', '9979'));
    expect(accountOf([sent('a'), ...later], [['7', 'a']], ['7']).wrong).toContain('toldTwice');
  });
});
