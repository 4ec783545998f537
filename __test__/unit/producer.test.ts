// Pins how adds become batches: their layout, their order, and who is told what.
import { describe, expect, it } from 'vitest';
import { ConnectionClosedError } from '../../src/errors/connection-closed-error.js';
import type { NativeAdded, NativeQueue } from '../../src/native/types.js';
import { Encoder, Producer, type AddedJob } from '../../src/add/producer.js';

interface Call {
  request: number;
  now: number;
  text: string;
  layout: number[];
  opts: string[];
}

function stage(answer: (call: Call) => Partial<NativeAdded> = () => ({})) {
  const calls: Call[] = [];
  let first = 1;
  const native = {
    add(request: number, now: number, text: string, layout: Uint32Array, opts: string[]) {
      const call = { request, now, text, layout: [...layout], opts };
      calls.push(call);
      const reply = { request, first, ...answer(call) };
      first += layout.length / 3;
      setImmediate(() => producer.settle([reply]));
    },
    addOne(request: number, now: number, name: string, data: string, opts = '{}') {
      this.add(request, now, name + data, Uint32Array.of(name.length, data.length, 0), [opts]);
    },
  };
  const producer = new Producer(() => native as unknown as NativeQueue);
  return { producer, calls };
}

const job = (name: string): AddedJob => ({ name, id: undefined });
const ids = (jobs: AddedJob[]) => jobs.map(({ id }) => id);

describe('Encoder', () => {
  it('writes names and data back to back, and each distinct option text once', () => {
    const encoder = new Encoder(1);
    encoder.append('a', '{}', '{}');
    encoder.append('bé', '"x"', '{"attempts":2}');
    encoder.append('', '1', '{}');
    encoder.append('d', '2', '{"attempts":2}');
    expect(encoder.take()).toEqual({
      text: 'a{}bé"x"1d2',
      layout: Uint32Array.of(1, 2, 0, 2, 3, 1, 0, 1, 0, 1, 1, 1),
      options: ['{}', '{"attempts":2}'],
    });
    expect(encoder.take()).toEqual({ text: '', layout: new Uint32Array(0), options: [] });
  });
});

describe('add', () => {
  it('sends the adds of one tick in one call, at its end', async () => {
    const { producer, calls } = stage();
    const adding = ['a', 'b'].map((name) => producer.add(job(name), 5, '{}', '{}'));
    await Promise.resolve();
    adding.push(producer.add(job('c'), 5, '{}', '{}'));
    expect(calls).toHaveLength(0);
    expect(ids(await Promise.all(adding))).toEqual(['1', '2', '3']);
    expect(calls).toMatchObject([{ now: 5, text: 'a{}b{}c{}' }]);
  });

  it('sends the only add of a tick text by text, and takes a number as its answer', async () => {
    const calls: unknown[][] = [];
    const native = { addOne: (...call: unknown[]) => calls.push(call) };
    const producer = new Producer(() => native as unknown as NativeQueue);
    const adding = producer.add(job('a'), 5, '1', '{}');
    await new Promise(setImmediate);
    const other = producer.add(job('b'), 6, '2', '{"attempts":2}');
    producer.flush();
    const [first, second] = calls.map(([request]) => request as number);
    expect(calls).toEqual([
      [first, 5, 'a', '1', undefined],
      [second, 6, 'b', '2', '{"attempts":2}'],
    ]);
    expect(second).toBeGreaterThan(first);
    producer.settleAdded(second, 8);
    producer.settleAdded(first, 7);
    producer.settleAdded(first, 9);
    expect(ids(await Promise.all([adding, other]))).toEqual(['7', '8']);
    expect(producer.unanswered).toBe(0);
  });

  it('gives jobs of another creation time a call of their own', async () => {
    const { producer, calls } = stage();
    const times = [5, undefined, 6, 6];
    await Promise.all(times.map((time) => producer.add(job('a'), time, '{}', '{}')));
    expect(calls.map(({ now, layout }) => [now, layout.length / 3])).toEqual([
      [5, 2],
      [6, 2],
    ]);
  });

  it('rejects the jobs that were refused, and only those', async () => {
    const exceptions = [
      { index: 0, id: 'mine' },
      { index: 1, error: { message: 'Missing key for parent job p. addJob', number: -5 } },
    ];
    const { producer } = stage(() => ({ exceptions }));
    const settled = await Promise.allSettled(['a', 'b', 'c'].map((name) => producer.add(job(name), 1, '{}', '{}')));
    expect(settled).toMatchObject([
      { status: 'fulfilled', value: { id: 'mine' } },
      { status: 'rejected', reason: { message: 'Missing key for parent job p. addJob', code: -5 } },
      { status: 'fulfilled', value: { id: '3' } },
    ]);
  });

  // add-travels-in-batches: a wanted difference (docs/differences.md)
  it('rejects all when the batch was refused, or the connection is gone', async () => {
    const { producer } = stage(() => ({ error: { message: 'full' } }));
    await expect(producer.add(job('a'), 1, '{}', '{}')).rejects.toThrow('full');

    const closed = new Producer(() => {
      throw new Error('Connection is closed.');
    });
    await expect(closed.add(job('a'), 1, '{}', '{}')).rejects.toThrow('Connection is closed.');
  });

  it('is rejected when it is abandoned', async () => {
    const { producer } = stage();
    const adding = producer.add(job('a'), 1, '{}', '{}');
    producer.flush();
    producer.abandon(new Error('Connection is closed.'));
    await expect(adding).rejects.toThrow('Connection is closed.');
  });

  it('gives each caller an error of its own, which tells who awaits it', async () => {
    async function whoAwaits(producer: Producer): Promise<Error> {
      try {
        await producer.add(job('a'), 1, '{}', '{}').then((added) => added.id);
      } catch (error) {
        return error as Error;
      }
      throw new Error('it was added');
    }
    const refusing = stage(() => ({ error: { message: 'full', code: 'FULL' } })).producer;
    const { producer: lost } = stage();
    const closed = new Producer(() => {
      throw new ConnectionClosedError();
    });
    const waiting = [refusing, refusing, closed, closed, lost, lost].map(whoAwaits);
    lost.flush();
    lost.abandon(new ConnectionClosedError());
    const errors = await Promise.all(waiting);
    expect(new Set(errors).size).toBe(6);
    expect(errors.slice(0, 2)).toMatchObject([{ code: 'FULL' }, { code: 'FULL' }]);
    for (const error of errors.slice(2)) expect(error).toBeInstanceOf(ConnectionClosedError);
    for (const { stack } of errors) expect(stack).toMatch(/\n +at (?:async )?whoAwaits \(.*producer\.test\.ts:/);
  });
});

describe('addBulk', () => {
  const encode = (jobs: AddedJob[]) => (encoder: Encoder, i: number) => encoder.append(jobs[i].name, '{}', '{}');

  it('keeps its place among single adds', async () => {
    const { producer, calls } = stage();
    const bulk = [job('b'), job('c')];
    const first = producer.add(job('a'), 1, '{}', '{}');
    const rest = producer.addBulk(bulk, 1, encode(bulk));
    const last = producer.add(job('d'), 1, '{}', '{}');
    expect(ids([await first, ...(await rest), await last])).toEqual(['1', '2', '3', '4']);
    expect(calls.map(({ text }) => text)).toEqual(['a{}', 'b{}c{}', 'd{}']);
  });

  it('splits what is too much for one call', async () => {
    const { producer, calls } = stage();
    const bulk = Array.from({ length: 5000 }, () => job('j'));
    await producer.addBulk(bulk, 1, encode(bulk));
    expect(calls.map(({ layout }) => layout.length / 3)).toEqual([4096, 904]);
    expect([bulk[0].id, bulk[4999].id]).toEqual(['1', '5000']);
  });

  it('sends nothing when one job cannot be encoded', () => {
    const { producer, calls } = stage();
    const bulk = Array.from({ length: 5000 }, () => job('j'));
    const failing = (encoder: Encoder, i: number) => {
      if (i === 4999) throw new Error('no');
      encode(bulk)(encoder, i);
    };
    expect(() => producer.addBulk(bulk, 1, failing)).toThrow('no');
    expect(calls).toHaveLength(0);
  });

  it('of nothing makes no call', async () => {
    const { producer, calls } = stage();
    expect(await producer.addBulk([], 1, () => {})).toEqual([]);
    expect(calls).toHaveLength(0);
  });
});
