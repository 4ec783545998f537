/** Values that JSON carries without a change. */
export const faithful: [string, unknown][] = [
  ['an empty object', {}],
  ['null', null],
  ['zero', 0],
  ['a fraction', -0.1],
  ['the greatest safe integer', Number.MAX_SAFE_INTEGER],
  ['a great number', 1.7976931348623157e308],
  ['a tiny number', 5e-324],
  ['a string', 'plain'],
  ['an empty string', ''],
  ['a string that looks like JSON', '{"a":1}'],
  ['true', true],
  ['false', false],
  ['an empty array', []],
  ['nested arrays', [[], [1, [2, [3, [null, {}]]]], 'x']],
  ['deep objects', { a: { b: { c: { d: [{ e: { f: null } }] } } } }],
  ['unicode', { text: 'ünï 日本語 العربية', 日本: 'key' }],
  ['astral characters', { text: '🚀👩‍👩‍👧', '🚀': 1 }],
  ['lone surrogates', { high: '\ud800', low: 'x\udc00y', twisted: '\udc00\ud800' }],
  ['NUL and control characters', { text: 'a\0b\u0001\u001f\u007f\n\r\t\b\f', 'k\0': 1 }],
  ['line separators and quotes', { text: '\u2028\u2029"\'\\/`' }],
  ['odd keys', { '': 1, 'a.b': 2, ' ': 3, 'a"b': 4, length: 5 }],
  ['a long string', 'plain '.repeat(1_000)],
  [
    'long strings beside others',
    {
      first: 1,
      plain: 'x'.repeat(5_000),
      between: [null, { deep: 'y'.repeat(3_000) }],
      wide: '日本'.repeat(2_000),
      quoted: `${'x'.repeat(3_000)}"`,
      lines: 'line\n'.repeat(1_000),
      control: `\u001f${'x'.repeat(3_000)}`,
      astral: '🚀'.repeat(2_000),
      lone: `${'x'.repeat(3_000)}\ud800`,
      ['a"b']: 'é'.repeat(3_000),
      7: 'seven'.repeat(1_000),
      last: '',
    },
  ],
  ['an object with 1,000 keys', Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, i]))],
];

class Celsius {
  constructor(readonly degrees: number) {}
  toJSON(): string {
    return `${this.degrees} °C`;
  }
}

/** Values that JSON changes, and what it makes of them. */
export const lossy: [string, unknown, unknown][] = [
  ['undefined in an object', { a: undefined, b: 1 }, { b: 1 }],
  ['undefined in an array', [undefined, 1], [null, 1]],
  ['a function or symbol in an object', { f: () => 1, s: Symbol('x'), b: 1 }, { b: 1 }],
  ['a Date', { at: new Date(5) }, { at: '1970-01-01T00:00:00.005Z' }],
  ['a Date by itself', new Date(5), '1970-01-01T00:00:00.005Z'],
  ['an invalid Date', { at: new Date(NaN) }, { at: null }],
  ['toJSON', { warm: new Celsius(21) }, { warm: '21 °C' }],
  ['toJSON by itself', new Celsius(21), '21 °C'],
  ['NaN and infinities', { n: NaN, list: [Infinity, -Infinity] }, { n: null, list: [null, null] }],
  ['NaN by itself', NaN, null],
  ['minus zero', { n: -0 }, { n: 0 }],
  ['a Map, a Set and a RegExp', { m: new Map([[1, 2]]), s: new Set([1]), r: /x/ }, { m: {}, s: {}, r: {} }],
  ['an Error', { e: new Error('lost') }, { e: {} }],
  ['a Buffer', { b: Buffer.from('ab') }, { b: { type: 'Buffer', data: [97, 98] } }],
  ['a typed array', { t: new Uint8Array([7, 8]) }, { t: { 0: 7, 1: 8 } }],
  // eslint-disable-next-line no-sparse-arrays -- the hole is the point
  ['a hole in an array', [, 1], [null, 1]],
  ['boxed primitives', { s: Object('s') as unknown, n: Object(1) as unknown }, { s: 's', n: 1 }],
];

export const cycle: { self?: unknown } = {};
cycle.self = cycle;

/** Values on which JSON.stringify throws. */
export const unserialisable: [string, unknown][] = [
  ['a cycle', cycle],
  ['a BigInt', { n: 1n }],
  ['a BigInt by itself', 1n],
  [
    'a toJSON that throws',
    {
      toJSON(): never {
        throw new Error('not for you');
      },
    },
  ],
];

export const megabyte = 'é'.repeat(512 * 1_024);

export const names = ['two words', '日本🚀', 'a\0b', '', '__proto__', '"\\\n', 'n'.repeat(10_000)];
