import { Failure, UsageError, type Command, type Io } from './command.js';
import { COMMANDS } from './commands.js';
import { didYouMean } from './nearest.js';
import { ownVersion } from './own-version.js';

/** What `npx chasquimq <args>` does. Gives the exit code: 0 done, 1 failed, 2 not understood. */
export async function main(args: string[], io: Io, commands: readonly Command[] = COMMANDS): Promise<number> {
  const [name, ...rest] = args;
  const command = commands.find((each) => each.name === name);
  try {
    if (command) return wantsHelp(rest) ? said(io, command.help) : await command.run(rest, io);
    return withoutCommand(name, rest, io, commands);
  } catch (error) {
    return told(error, command, io);
  }
}

function withoutCommand(name: string | undefined, rest: string[], io: Io, commands: readonly Command[]): number {
  if (name === '--version' || name === '-v') return said(io, `${ownVersion()}\n`);
  if (name === '--help' || name === '-h') return said(io, overview(commands));
  const names = commands.map((each) => each.name);
  if (name === 'help') {
    const about = commands.find((each) => each.name === rest[0]);
    if (!about && rest[0] !== undefined) throw unknown(rest[0], names);
    return said(io, about?.help ?? overview(commands));
  }
  if (name !== undefined) throw unknown(name, names);
  io.stderr.write(overview(commands));
  return 2;
}

function unknown(name: string, names: string[]): UsageError {
  const what = name.startsWith('-') ? 'option' : 'command';
  return new UsageError(`There is no ${what} ${name}.${didYouMean(name, [...names, '--help', '--version'])}`);
}

/** Options behind `--` are no options. */
function wantsHelp(args: string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === '--help' || arg === '-h');
}

function said(io: Io, text: string): number {
  io.stdout.write(text);
  return 0;
}

/** Says what went wrong in one line; of what nobody foresaw the stack as well, if it is asked for. */
function told(error: unknown, command: Command | undefined, io: Io): number {
  if (error instanceof UsageError) {
    const named = command ? `chasquimq ${command.name}` : 'chasquimq';
    io.stderr.write(`${named}: ${error.message}\nSee ${named} --help\n`);
    return 2;
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  io.stderr.write(`chasquimq: ${message}\n`);
  if (!(error instanceof Failure) && io.env.CHASQUIMQ_DEBUG) io.stderr.write(`${stack ?? ''}\n`);
  return 1;
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return `ChasquiMQ ${ownVersion()}: a job queue for Node.js on Redis

Usage: chasquimq <command> [options]

${commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')}

  chasquimq <command> --help   options and examples of a command
  chasquimq --version          the version of the package

Exit codes: 0 done, 1 failed, 2 not understood.
`;
}
