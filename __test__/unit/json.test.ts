// Pins that data and results become what `JSON.stringify` makes of them, and come back as `JSON.parse` reads them, however long their texts are.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from '../../src/native/json.js';
import { Random } from '../support/random.js';

const VALUES = 30_000;
/** About where texts begin to be long. */
const LENGTHS = [0, 3, 2_047, 2_048, 5_000];
const CHARACTERS = ['x', '"', '\\', '\n', '\u001f', '\u007f', ' ', 'é', '日', '🚀', '\ud800', '\udc00', '\u2028'];
const KEYS = ['a', 'b', '1', '0', '__proto__', 'c"d', 'é', 'toJSON', '\ud800'];

/** Values of all kinds, most of them objects with long texts. */
class Values {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  #oneOf<T>(list: readonly T[]): T {
    return list[this.#random.next(list.length)];
  }

  text(): string {
    const text = 'x'.repeat(this.#oneOf(LENGTHS));
    const at = this.#random.next(text.length + 1);
    return this.#random.next(2) === 0 ? text : text.slice(0, at) + this.#oneOf(CHARACTERS) + text.slice(at);
  }

  any(depth: number): unknown {
    const makers: (() => unknown)[] = [
      () => this.text(),
      () => this.text(),
      () => this.text(),
      () => this.object(depth - 1),
      () => [this.text(), undefined],
      () => ({ toJSON: (key: string) => `key ${key}` }),
      () => Object.create({ inherited: this.text() }) as unknown,
      () => Object(this.text()) as unknown,
      () =>
        this.#oneOf([1, NaN, null, undefined, true, 10n, Symbol('s'), () => 1, new Date(5), new Map(), new Error('e')]),
    ];
    return this.#oneOf(depth > 0 ? makers : makers.filter((_, i) => i !== 3))();
  }

  object(depth: number): object {
    const object = {};
    for (let left = this.#random.next(6); left > 0; left--) {
      const value = this.any(depth);
      const kind = this.#random.next(12);
      const property = kind === 0 ? { get: () => value } : { value, writable: true };
      Object.defineProperty(object, this.#oneOf(KEYS), { ...property, enumerable: kind !== 1, configurable: true });
    }
    const cycle = this.#random.next(60);
    if (cycle < 2) Object.assign(object, cycle === 0 ? { itself: object } : { below: { above: object } });
    return object;
  }
}

const resultOf = <T>(convert: (from: T) => unknown, from: T) => {
  try {
    return convert(from);
  } catch (error) {
    return String(error);
  }
};

describe('stringify', () => {
  it('gives what JSON.stringify gives, of any value', () => {
    const values = new Values(1);
    let long = 0;
    for (let i = 0; i < VALUES; i++) {
      const value = values.any(2);
      const expected = resultOf(JSON.stringify, value);
      if (resultOf(stringify, value) !== expected) expect(resultOf(stringify, value)).toBe(expected);
      if (typeof expected === 'string' && expected.length > 2_048) long++;
    }
    expect(long).toBeGreaterThan(VALUES / 4);
  });

  it('reads each property once', () => {
    let reads = 0;
    const value = {
      text: 'x'.repeat(5_000),
      get read(): number {
        return ++reads;
      },
    };
    for (let i = 1; i <= 3; i++) {
      expect(JSON.parse(stringify(value) ?? '')).toEqual({ text: value.text, read: i });
      expect(reads).toBe(i);
    }
  });

  it('refuses what JSON.stringify refuses, with its error', () => {
    const text = 'x'.repeat(5_000);
    const cycle: Record<string, unknown> = { text };
    cycle.below = { above: cycle };
    for (const value of [
      cycle,
      { text, big: 1n },
      {
        text,
        below: {
          get bad(): never {
            throw new Error('no');
          },
        },
      },
    ]) {
      expect(() => stringify(value)).toThrow(String(resultOf(JSON.stringify, value)).replace(/^\w+: /, ''));
    }
  });
});

describe('parse', () => {
  /** JSON tells two values from each other that come from JSON: with the order of their keys, and `__proto__` among these. */
  const expectSame = (text: string) => {
    const read = (parser: (text: string) => unknown) =>
      resultOf((given: string) => JSON.stringify(parser(given)), text);
    const expected = read((given) => JSON.parse(given));
    if (read(parse) !== expected) expect(read(parse)).toBe(expected);
  };

  it('gives what JSON.parse gives, of any JSON', () => {
    const values = new Values(2);
    let long = 0;
    for (let i = 0; i < VALUES; i++) {
      const text = resultOf(JSON.stringify, values.any(2));
      if (typeof text !== 'string') continue;
      expectSame(text);
      if (text.length > 2_048) long++;
    }
    expect(long).toBeGreaterThan(VALUES / 4);
  });

  it('refuses what JSON.parse refuses, with its error', () => {
    const [values, random] = [new Values(3), new Random(3)];
    const signs = ['"', '\\', '{', '}', '[', ',', ':', ' ', '0', ''];
    let refused = 0;
    for (let i = 0; i < VALUES; i++) {
      const text = JSON.stringify({ long: 'x'.repeat(3_000), short: 'x', more: values.text() });
      const at = random.next(3) === 0 ? random.next(text.length) : text.indexOf('"', random.next(text.length));
      const wrong = text.slice(0, at) + signs[random.next(signs.length)] + text.slice(at + random.next(3));
      expectSame(wrong);
      if (String(resultOf(JSON.parse, wrong)).startsWith('SyntaxError')) refused++;
    }
    expect(refused).toBeGreaterThan(VALUES / 4);
  });

  it('reads a key that is there twice, as long as its text, or deeper, as JSON.parse does', () => {
    const long = 'x'.repeat(3_000);
    for (const text of [
      `{"a":"${long}","a":1}`,
      `{"a":1,"a":"${long}"}`,
      `{"a":"${long}","a":"${long}y"}`,
      `{"${long}":"${long}"}`,
      `{"a":{"b":"${long}"},"c":"${long}"}`,
      `{"a":["${long}"]}`,
      ` {"a" : "${long}" } `,
      `"${long}"`,
      `"${long}" `,
      `"${long}""`,
      `["${long}"]`,
    ])
      expectSame(text);
  });

  it('makes a text that does not keep alive what it came in', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const [ofOne, times] = [JSON.stringify({ text: 'x'.repeat(3_000) }), 1_000];
    collect();
    const before = process.memoryUsage().heapUsed;
    const kept = Array.from({ length: times }, () => {
      // as the addon gives them: of several jobs, in one string
      const ofMany = Buffer.from(ofOne.repeat(20)).toString('latin1');
      return parse(ofMany.substring(0, ofOne.length));
    });
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2 * times * ofOne.length);
    expect(kept).toHaveLength(times);
  });
});
