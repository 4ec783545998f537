import type { Io } from './command.js';

/** Whether there is somebody to be asked. */
export function canAsk({ stdin, isTTY }: Pick<Io, 'stdin' | 'isTTY'>): boolean {
  return isTTY && stdin.isTTY === true;
}

/** Asks for a yes; anything else, and the end of the input or of the command, is a no. */
export async function confirmed({ stdin, stderr, signal }: Io, question: string): Promise<boolean> {
  stderr.write(`${question} [y/N] `);
  const answer = await new Promise<string>((resolve) => {
    let text = '';
    const hear = (keys: Buffer | string): void => {
      text += keys.toString();
      if (text.includes('\n')) end();
    };
    const end = (): void => {
      stdin.off('data', hear);
      stdin.off('end', end);
      signal.removeEventListener('abort', end);
      stdin.pause();
      resolve(text);
    };
    stdin.on('data', hear);
    stdin.on('end', end);
    signal.addEventListener('abort', end);
    stdin.resume();
  });
  return /^y(es)?$/i.test(answer.trim());
}
