/**
 * A place in a list, counted from its head, or below 0 from its end.
 * @throws RangeError with the server's text for what is no whole number
 */
export function rank(place: number): number {
  // JavaScript callers give numbers as texts; `null` and '' would be 0
  const number = typeof place === 'string' && (place as string).trim() !== '' ? Number(place) : place;
  if (!Number.isInteger(number)) throw new RangeError('ERR value is not an integer or out of range');
  return number;
}
