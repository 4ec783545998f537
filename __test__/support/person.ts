import type { Io } from '../../src/tools/cli/command.js';
import { serverUrl } from './redis.js';

/** Somebody at a terminal who gives that answer when asked; `meanwhile` ends before. */
export function person(
  answer: string,
  meanwhile = async (): Promise<void> => {},
): { io: Io; asked: () => string; shown: () => string } {
  const listeners = new Set<(text: string) => void>();
  let [asked, shown] = ['', ''];
  const stdin = {
    isTTY: true,
    on: (event: string, listener: (text: string) => void) => event === 'data' && listeners.add(listener),
    off: (_: string, listener: (text: string) => void) => listeners.delete(listener),
    resume: () => void meanwhile().then(() => listeners.forEach((listener) => listener(answer))),
    pause: () => {},
  };
  const io: Io = {
    stdin: stdin,
    stdout: { write: (text: string) => (shown += text) },
    stderr: { write: (text: string) => (asked += text) },
    isTTY: true,
    signal: new AbortController().signal,
    env: { REDIS_URL: serverUrl() },
  };
  return { io, asked: () => asked, shown: () => shown };
}
