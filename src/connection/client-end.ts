/**
 * The end of an ioredis client that was given as a connection: what goes by its options ends with it, as if it went by the client. Programs that end
 * their client, and no queue, go on to their own end then.
 */

/** The part of an ioredis client that counts here. */
export interface GivenClient {
  on(event: 'end', listener: () => void): unknown;
}

/** What ends with each client. */
const following = new WeakMap<GivenClient, Set<() => void>>();

/**
 * Calls `ended` when the client has ended: by `quit`, by `disconnect`, or for it gave up.
 * @returns stops that
 */
export function onClientEnd(client: GivenClient, ended: () => void): () => void {
  let all = following.get(client);
  if (!all) {
    const calls = new Set<() => void>();
    // one listener for all: a client warns of many
    client.on('end', () => calls.forEach((call) => call()));
    following.set(client, (all = calls));
  }
  all.add(ended);
  return () => all.delete(ended);
}
