import { expect, it } from 'vitest';
import { lateLine } from '../../src/tools/cli/report-text.js';
import { duration, plain, rate, table, wrapped } from '../../src/tools/cli/text.js';

it('a time is shown in its two largest units', () => {
  expect([0, 999, 1_000, 61_000, 3_600_000, 90_061_000, -5].map(duration)).toEqual([
    '0ms',
    '999ms',
    '1s',
    '1m 1s',
    '1h',
    '1d 1h',
    '0ms',
  ]);
});

it('a server that is late is so by whole seconds: a timer may fire before its time', () => {
  expect([1_998.4, 2_001, 4_000].map(lateLine)).toEqual(
    ['2s', '2s', '4s'].map((time) => `no answer from the server for ${time}`),
  );
});

it('a rate has decimals where they say something', () => {
  expect([0, 0.016, 1.5, 99.96, 1234.5].map(rate)).toEqual(['0', '0.02', '1.5', '100.0', '1,235']);
});

it('what would move a cursor or hide text is shown as an escape', () => {
  expect(plain('a\x1b[2Jb\r\n\u202ec\u009b')).toBe('a\\u001b[2Jb\\u000d\\n\\u202ec\\u009b');
  expect(plain('long text', 5)).toBe('long…');
});

it('columns are as wide as what is in them, numbers to the right', () => {
  expect(
    table(
      ['NAME', '>N'],
      [
        ['a', '10'],
        ['long name', '5'],
      ],
    ),
  ).toEqual(['NAME        N', 'a          10', 'long name   5']);
  expect(table(['NAME', '>N'], [])).toEqual(['NAME  N']);
});

it('a table has any number of rows', () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`${i}`]);
  expect(table(['>N'], rows)).toHaveLength(200_001);
});

it('lines end before the width, where words allow', () => {
  expect(wrapped('one two three', 7)).toBe('one two\nthree');
  expect(wrapped('one incomprehensible', 5, '  ')).toBe('  one\n  incomprehensible');
});
