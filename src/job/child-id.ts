/** Three hexadecimal digits. A number's own `toString(16)` divides once for each digit, which costs more than the rest of a child's name. */
const DIGITS = Array.from({ length: 0x1000 }, (_, number) => number.toString(16).padStart(3, '0'));

/** Children that come one behind the other have all but the last digits in common. */
let last = { ids: '', high: -1, front: '' };

/** The id that the engine gives to a child: a UUID, of which `ids` is the front and `number` the rest: twelve hexadecimal digits. */
export function childId(ids: string, number: number): string {
  const high = Math.floor(number / DIGITS.length);
  if (high !== last.high || ids !== last.ids) {
    last = { ids, high, front: ids + high.toString(16).padStart(9, '0') };
  }
  return last.front + DIGITS[number - high * DIGITS.length];
}
