// Pins who decides that a connection will not come.
import { describe, expect, it, vi } from 'vitest';
import { Readiness } from '../../src/connection/readiness.js';

const refused = new Error('connect ECONNREFUSED');

describe('waiting for a connection', () => {
  it('goes on after failed tries when there is no retry strategy', async () => {
    let tries = 0;
    const readiness = new Readiness(() => (++tries < 2 ? Promise.reject(refused) : Promise.resolve()), undefined);
    await readiness.wait();
    expect([tries, readiness.isUp, readiness.wasUp]).toEqual([2, true, true]);
  });

  // retry-strategy: a wanted difference (docs/differences.md)
  it('ends when the retry strategy gives no number', async () => {
    const strategy = vi.fn((times: number) => (times < 3 ? 10 : null));
    const onSurrender = vi.fn();
    const readiness = new Readiness(() => new Promise(() => {}), strategy, onSurrender);
    const waiting = readiness.wait();
    for (let i = 0; i < 4; i++) readiness.failed(refused);
    await expect(waiting).rejects.toBe(refused);
    await expect(readiness.wait()).rejects.toBe(refused);
    expect(strategy.mock.calls).toEqual([[1], [2], [3]]);
    expect(onSurrender).toHaveBeenCalledExactlyOnceWith(refused);
  });

  it('ends when the retry strategy throws, with what it throws', async () => {
    const thrown = new Error('in strategy');
    const strategy = vi.fn(() => {
      throw thrown;
    });
    const onSurrender = vi.fn();
    const readiness = new Readiness(() => new Promise(() => {}), strategy, onSurrender);
    const waiting = readiness.wait();
    for (let i = 0; i < 3; i++) readiness.failed(refused);
    await expect(waiting).rejects.toBe(thrown);
    expect(strategy).toHaveBeenCalledOnce();
    expect(onSurrender).toHaveBeenCalledExactlyOnceWith(thrown);
  });

  it('ends when the connection is closed', async () => {
    const readiness = new Readiness(() => Promise.reject(refused), undefined);
    const waiting = readiness.wait();
    readiness.stop();
    expect([await waiting, await readiness.wait(), readiness.isUp]).toEqual([undefined, undefined, false]);
  });

  it('starts anew when the connection breaks', async () => {
    let open = (): void => {};
    const readiness = new Readiness(() => new Promise((resolve) => (open = resolve)), undefined);
    const first = readiness.wait();
    open();
    await first;
    readiness.lost();
    expect([readiness.isUp, readiness.isDown]).toEqual([false, true]);
    open();
    await readiness.wait();
    expect([readiness.isUp, readiness.isDown]).toEqual([true, false]);
  });
});
