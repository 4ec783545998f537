// Pins that emitting never throws, whatever is emitted and whoever listens.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { emitError } from '../../src/errors/emit-error.js';

afterEach(() => vi.restoreAllMocks());

describe('emitError', () => {
  it('prints what nobody took', () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const error = new Error('unheard');
    const emit = (thrown: unknown): never => {
      throw thrown as Error;
    };
    expect(emitError(emit, error)).toBe(false);
    expect(printed).toHaveBeenCalledExactlyOnceWith(error);
  });

  it('says so when that cannot be printed', () => {
    const shown: unknown[] = [];
    vi.spyOn(console, 'error').mockImplementation((text) => {
      if (typeof text !== 'string') throw new Error('not to be shown');
      shown.push(text);
    });
    const emit = (): never => {
      throw new Error('unheard');
    };
    expect(emitError(emit, 1)).toBe(false);
    expect(shown).toEqual(['An error was emitted that throws when it is looked at']);
  });
});
