// Pins that a text for the addon is what was appended, in pieces where it is long.
import { constants } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { LongText } from '../../src/native/long-text.js';

const textOf = (...texts: string[]) => {
  const text = new LongText();
  for (const next of texts) text.append(next);
  return text;
};

describe('LongText', () => {
  it('is a string while it is short, and begins anew when it was taken', () => {
    const text = textOf('a', '', 'bc');
    text.append('d', 'e');
    expect([text.length, text.take(), text.length, text.take()]).toEqual([5, 'abcde', 0, '']);
  });

  it('comes in pieces of 64 Ki characters at most, but for texts that are longer', () => {
    const [half, long] = ['h'.repeat(40_000), 'l'.repeat(200_000)];
    const text = textOf(half, 'x', half, long, 'y', long);
    expect(text.take()).toEqual([`${half}x`, half, long, 'y', long]);
    text.append('name', long);
    expect(text.take()).toEqual(['name', long]);
  });

  it('is not longer than a string may be: what is refused leaves it as it was', () => {
    const text = textOf('a');
    const longest = 'x'.repeat(constants.MAX_STRING_LENGTH);
    expect(() => text.append('b', longest)).toThrow(new RangeError('Invalid string length'));
    expect([text.length, text.take()]).toEqual([1, 'a']);
  });
});
