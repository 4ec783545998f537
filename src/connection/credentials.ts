/** `username` and `password` as functions: each connection that is opened asks them, as a token may have ended since the last one, and again before it ends. */
import type { NativeConnection, NativeCredentials } from '../native/types.js';
import { numberOf } from './peer-certificate.js';

const OPTIONS = ['username', 'password'] as const;

type Asked = () => unknown;

/** A password that ends. */
interface Token {
  token?: unknown;
  expiresAt?: unknown;
}

/** What the engine asks, where one of them is a function. */
export function credentialsOf(
  fields: Record<string, unknown>,
): Pick<NativeConnection, 'askCredentials' | 'credentialsKey'> {
  const asked = OPTIONS.filter((name) => typeof fields[name] === 'function');
  if (asked.length === 0) return {};
  return {
    askCredentials: async () => {
      const answers = asked.map(async (name) => read(name, await (fields[name] as Asked)()));
      return Object.assign({}, ...(await Promise.all(answers))) as NativeCredentials;
    },
    // connections are shared where the same functions say who logs in
    credentialsKey: asked.map((name) => `${name} ${numberOf(fields[name] as Asked)}`).join(),
  };
}

function read(name: (typeof OPTIONS)[number], value: unknown): NativeCredentials {
  if (name === 'username' || typeof value !== 'object' || value === null) return { [name]: textOf(name, value) };
  const { token, expiresAt }: Token = value;
  const lastsMs = Number(expiresAt) - Date.now();
  if (Number.isNaN(lastsMs)) throw new TypeError('expiresAt of connection.password must be a Date, or epoch ms');
  return { password: textOf(name, token), lastsMs };
}

/** @throws TypeError for what is no text: it is not repeated */
function textOf(name: string, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  const forms =
    name === 'password' ? 'a string or { token, expiresAt }, or a promise of either' : 'a string, or a promise of one';
  throw new TypeError(`connection.${name} must give ${forms}`);
}
