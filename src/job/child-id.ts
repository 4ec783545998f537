/** The id that the engine gives to a child: a UUID, of which `ids` is the front and `number` the rest. */
export function childId(ids: string, number: number): string {
  // a one and twelve hexadecimal digits
  return ids + (0x1000000000000 + number).toString(16).substring(1);
}
