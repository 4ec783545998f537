// Runs the commands the other scripts are made of: shows what runs and for how long, passes signals on to the whole
// command, and turns the end of it into an exit code. Progress goes to stderr, so that stdout stays the command's own.
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { constants, homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

// Ours first. Last the folder rustup installs to, which a shell that was open before does not know yet.
const folders = [join(root, 'node_modules', '.bin'), process.env.PATH, join(homedir(), '.cargo', 'bin')];
process.env.PATH = folders.join(delimiter);

const windows = process.platform === 'win32';
const HEARTBEAT_MS = 10_000;
const children = new Set();
let stopping = null;

/** A message for the person at the terminal; the scripts show it without a stack and exit with `code`. */
export class Stop extends Error {
  constructor(message, code = 1) {
    super(message);
    this.code = code;
  }
}

export const say = (line) => process.stderr.write(`${line}\n`);

export function elapsed(since) {
  const seconds = (performance.now() - since) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/**
 * Runs one command to its end. A `quiet` command shows a line every few seconds instead of its output, and the output
 * when it fails; one that is `held` shows it at its end, as it runs beside another. Rejects with a {@link Stop} that carries
 * the command's exit code.
 */
export async function run(title, command, args, { env = {}, quiet = false, held = false, cwd = root } = {}) {
  if (stopping) throw new Stop('', 128 + constants.signals[stopping]);
  const since = performance.now();
  say(`> ${title}`);
  const child = spawn(command, windows ? args.map(forCmd) : args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: quiet || held ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
    // A group of its own, so that a signal reaches what the command starts as well (cargo's test binaries, npm's
    // scripts). Windows has no groups, and needs a shell to start npm.cmd and its like.
    detached: !windows,
    shell: windows,
  });
  children.add(child);
  const output = [];
  child.stdout?.on('data', (chunk) => output.push(chunk));
  child.stderr?.on('data', (chunk) => output.push(chunk));
  const heartbeat = quiet && setInterval(() => say(`  ... ${title}: ${elapsed(since)}`), HEARTBEAT_MS);
  try {
    const code = await ending(child, command);
    if (held || code !== 0) process.stderr.write(Buffer.concat(output));
    if (code !== 0) {
      throw new Stop(`${title}: failed after ${elapsed(since)}`, code);
    }
    say(`  ${title}: ${elapsed(since)}`);
  } finally {
    clearInterval(heartbeat);
    children.delete(child);
  }
}

/** An argument as cmd.exe has to be given it, so that it arrives as one and as it is. */
export const forCmd = (arg) => (/^[\w./:=@+-]+$/.test(arg) ? arg : `"${arg.replaceAll('"', '\\"')}"`);

function ending(child, command) {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new Stop(`${command} does not start: ${error.message}`)));
    child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/** Runs every step, also after one has failed, so that one look shows all there is to mend. */
export async function runAll(steps) {
  const failures = [];
  for (const step of steps) {
    await step().catch((error) => {
      if (!(error instanceof Stop) || stopping || steps.length === 1) throw error;
      say(error.message);
      failures.push(error.message);
    });
  }
  if (failures.length > 0) throw new Stop(['', ...failures].join('\n'));
}

/** Runs lists of steps beside each other, the steps of a list one after the other: so cores work while others wait. */
export async function runLanes(...lanes) {
  const ends = await Promise.allSettled(lanes.filter((lane) => lane.length > 0).map(runAll));
  const errors = ends.flatMap(({ reason }) => reason ?? []);
  const fault = errors.find((error) => !(error instanceof Stop) || stopping);
  if (fault) throw fault;
  if (errors.length > 0) throw new Stop(errors.map(({ message }) => message).join('\n'));
}

/** What a short command prints, or null when it is missing or fails. */
export async function ask(command, args) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  const code = await ending(child, command).catch(() => 1);
  return code === 0 ? text.trim() : null;
}

/** True when `url` is the script that node was told to run, rather than one that another script imports. */
export const isEntry = (url) => process.argv[1] !== undefined && fileURLToPath(url) === realpathSync(process.argv[1]);

/** Runs an entry script: stops what it started on a signal, prints a failure in one line, sets the exit code. */
export async function main(body) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
  if (process.env.npm_lifecycle_event) stopWithParent();
  const since = performance.now();
  try {
    await body(process.argv.slice(2));
    say(`done in ${elapsed(since)}`);
  } catch (error) {
    if (!(error instanceof Stop)) say(error.stack);
    else if (error.message) say(`FAILED: ${error.message.trim()}`);
    process.exitCode = stopping ? 128 + constants.signals[stopping] : (error.code ?? 1);
  }
}

// npm hands a SIGTERM on to the shell between it and us, which dies of it without a word.
function stopWithParent() {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    stop('SIGTERM');
  }, 250);
  watch.unref();
}

// The first signal asks; the second, from a person who has waited long enough, does not.
function stop(signal) {
  const sent = stopping ? 'SIGKILL' : signal;
  stopping = signal;
  for (const child of children) {
    try {
      if (windows) child.kill(sent);
      else process.kill(-child.pid, sent);
    } catch {
      // The command ended between the signal and this line.
    }
  }
}
