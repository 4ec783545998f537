/**
 * Members of frozen or sealed objects, which take none any more: a processor may freeze its job, whose members are
 * decoded when they are first read.
 */
const members = new WeakMap<object, Record<symbol, unknown>>();

/** The side table of an object. */
export function sideTable(owner: object): Record<symbol, unknown> {
  let own = members.get(owner);
  if (!own) members.set(owner, (own = {}));
  return own;
}

/** A member of the side table, made when it is first asked for. */
export function onceInSideTable(owner: object, member: symbol, make: () => unknown): unknown {
  const own = sideTable(owner);
  return member in own ? own[member] : (own[member] = make());
}
