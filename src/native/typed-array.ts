/** A copy of an array, twice as long. An empty one gets room for `least` numbers. */
export function doubled<A extends Uint32Array | Int32Array | Float64Array>(array: A, least = 0): A {
  const copy = new (array.constructor as new (length: number) => A)(Math.max(least, array.length * 2));
  copy.set(array);
  return copy;
}
