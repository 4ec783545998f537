#!/usr/bin/env node
/** `npx chasquimq`: gives `main` what it needs of the process. */
import { main } from './main.js';

const ending = new AbortController();
// the first signal asks a command to end; a second one, from a person who has waited long enough, ends the process
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
// `chasquimq failed mail | head`: nobody reads on, which Windows says in another way
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE' && error.code !== 'EOF') throw error;
  ending.abort();
});

const io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  isTTY: Boolean(process.stdout.isTTY),
  signal: ending.signal,
  env: process.env,
};

void main(process.argv.slice(2), io).then((code) => {
  process.exitCode = code;
});
