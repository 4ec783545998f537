/**
 * Members of objects that a user has frozen or sealed, and which take none any more: a processor may do so with its job,
 * whose members are decoded when they are first read.
 */
const members = new WeakMap<object, Record<symbol, unknown>>();

/** What lies beside this object. */
export function beside(owner: object): Record<symbol, unknown> {
  let own = members.get(owner);
  if (!own) members.set(owner, (own = {}));
  return own;
}

/** A member that lies beside, made when it is first asked for. */
export function onceBeside(owner: object, member: symbol, make: () => unknown): unknown {
  const own = beside(owner);
  return member in own ? own[member] : (own[member] = make());
}
