// Pins who gathers jobs for a batch, against a server that is played by the test.
import { describe, expect, it, vi } from 'vitest';
import { Gatherer } from '../../src/worker/gatherer.js';

function stage(...answers: (number | undefined)[]) {
  const holder = { limit: vi.fn(), giveBack: vi.fn(), tellRoom: vi.fn() };
  const asked: number[] = [];
  const ask = (ms: number) => {
    asked.push(ms);
    return Promise.resolve(answers.shift());
  };
  return { gatherer: new Gatherer(holder, ask, 200), holder, asked };
}

describe('the gatherer', () => {
  it('says nothing of what is too few for a moment only', () => {
    const { gatherer, asked } = stage();
    gatherer.begin();
    gatherer.end();
    gatherer.stop();
    expect(asked).toEqual([]);
  });

  it('goes on where nobody answers, and says so again, until it is done', async () => {
    const { gatherer, holder, asked } = stage(undefined, 3, 0);
    gatherer.begin();
    await vi.waitFor(() => expect(holder.limit).toHaveBeenCalledWith(3), { timeout: 5000 });
    expect(holder.giveBack).not.toHaveBeenCalled();
    gatherer.end();
    await vi.waitFor(() => expect(asked).toEqual([5000, 5000, 0]));
  });

  it('gives back and rests behind another one, and looks as often as a batch may wait', async () => {
    const { gatherer, holder, asked } = stage(-1, -1, 0);
    gatherer.begin();
    await vi.waitFor(() => expect(holder.giveBack).toHaveBeenCalledOnce());
    expect(gatherer.rests).toBe(true);
    // what it gives back is not for itself
    expect(holder.tellRoom.mock.invocationCallOrder[0]).toBeLessThan(holder.giveBack.mock.invocationCallOrder[0]);
    await vi.waitFor(() => expect(gatherer.rests).toBe(false));
    expect(holder.tellRoom).toHaveBeenCalledTimes(2);
    expect(asked).toEqual([5000, 0, 0]);
  });

  it('gives back and does not rest where the queue is paused', async () => {
    const { gatherer, holder, asked } = stage(-2);
    gatherer.begin();
    await vi.waitFor(() => expect(holder.giveBack).toHaveBeenCalledOnce());
    expect([gatherer.rests, asked]).toEqual([false, [5000]]);
  });

  it('takes no answer from before it was done', async () => {
    let answer = (_most: number): void => {};
    const holder = { limit: vi.fn(), giveBack: vi.fn(), tellRoom: vi.fn() };
    const asked: number[] = [];
    const ask = (ms: number) => {
      asked.push(ms);
      return new Promise<number>((resolve) => (answer = resolve));
    };
    const gatherer = new Gatherer(holder, ask, Infinity);
    gatherer.begin();
    await vi.waitFor(() => expect(asked).toEqual([5000]));
    gatherer.end();
    answer(-1);
    // it was told of perhaps: it says that it is done, behind the answer
    await vi.waitFor(() => expect(asked).toEqual([5000, 0]));
    expect([gatherer.rests, holder.giveBack.mock.calls]).toEqual([false, []]);
  });
});
