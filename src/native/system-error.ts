import { constants } from 'node:os';

/** libuv's numbers of lookups that fail. */
const LOOKUPS: Record<string, number> = { ENOTFOUND: -3008, EAI_AGAIN: -3001 };

const TEXT = /^(connect|read|write|getaddrinfo) (E\w+)(?: (.+))?$/;
const HOST_AND_PORT = /^(.+):(\d+)$/;

/** The fields that Node gives an error of a connection beside `code`, as its text tells them: `connect ECONNREFUSED 127.0.0.1:6379`. */
export function systemFields(text: string): object {
  const [, syscall, code = '', where] = TEXT.exec(text) ?? [];
  if (syscall === undefined) return {};
  const number = constants.errno[code as keyof typeof constants.errno] as number | undefined;
  const errno = LOOKUPS[code] ?? (number === undefined ? undefined : -number);
  return { ...(errno !== undefined && { errno }), syscall, ...(where !== undefined && placeOf(syscall, where)) };
}

function placeOf(syscall: string, where: string): object {
  if (syscall === 'getaddrinfo') return { hostname: where };
  const [, address, port] = HOST_AND_PORT.exec(where) ?? [];
  return address === undefined ? { address: where } : { address, port: Number(port) };
}
