import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serverUrl } from './redis.js';

export const BIN = fileURLToPath(new URL('../../dist/cjs/tools/cli/bin.js', import.meta.url));

/** How long a command may take. */
const WAIT_MS = 60_000;

export interface CliOptions {
  /** Beside REDIS_URL, which names the server under test; undefined takes a variable away. */
  env?: Record<string, string | undefined>;
  cwd?: string;
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts `chasquimq <args>` as it was built. Nothing of the test runner's environment reaches it. */
export function startCli(args: string[], { env = {}, cwd }: CliOptions = {}): ChildProcessWithoutNullStreams {
  const { PATH, HOME, TMPDIR } = process.env;
  const all = { PATH, HOME, TMPDIR, REDIS_URL: serverUrl(), ...env };
  return spawn(process.execPath, [BIN, ...args], { env: all, cwd });
}

/** Runs it to its end. */
export async function cli(args: string[], options: CliOptions = {}): Promise<Ended> {
  const child = startCli(args, options);
  child.stdin.end();
  return ended(child);
}

/** What a process said, once it has ended. One that does not end is killed: its code is null then. */
export async function ended(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const timer = setTimeout(() => child.kill('SIGKILL'), WAIT_MS);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  return { code, stdout, stderr };
}
