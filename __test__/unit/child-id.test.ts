import { describe, expect, it } from 'vitest';
import { childId } from '../../src/job/child-id.js';

describe('childId', () => {
  it('is what it begins with, and a number of twelve hexadecimal digits', () => {
    for (const number of [0, 1, 15, 16, 4095, 4096, 4097, 2 ** 24, 2 ** 32 + 5, 2 ** 48 - 1]) {
      expect(childId('ids-', number)).toBe(`ids-${number.toString(16).padStart(12, '0')}`);
    }
  });

  it('mixes up no two parents whose children come in turn', () => {
    expect([1, 2, 3].flatMap((number) => [childId('a-', number), childId('b-', number)])).toEqual([
      'a-000000000001',
      'b-000000000001',
      'a-000000000002',
      'b-000000000002',
      'a-000000000003',
      'b-000000000003',
    ]);
  });
});
