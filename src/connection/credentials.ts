/** `username` and `password` as functions: each connection that is opened asks them, as a token may have ended since the last one. */
import type { NativeConnection } from '../native/types.js';
import { numberOf } from './peer-certificate.js';

const OPTIONS = ['username', 'password'] as const;

type Asked = () => unknown;

/** What the engine asks, where one of them is a function. */
export function credentialsOf(
  fields: Record<string, unknown>,
): Pick<NativeConnection, 'askCredentials' | 'credentialsKey'> {
  const asked = OPTIONS.filter((name) => typeof fields[name] === 'function');
  if (asked.length === 0) return {};
  return {
    askCredentials: async () => {
      const texts = asked.map(async (name) => [name, textOf(name, await (fields[name] as Asked)())] as const);
      return Object.fromEntries(await Promise.all(texts));
    },
    // connections are shared where the same functions say who logs in
    credentialsKey: asked.map((name) => `${name} ${numberOf(fields[name] as Asked)}`).join(),
  };
}

/** @throws TypeError for what is no text: it is not repeated */
function textOf(name: string, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new TypeError(`connection.${name} must give a string, or a promise of one`);
}
