import type { ServerLibrary } from '../../library/server-library.js';
import { isGiven, readArguments, type Arguments } from '../arguments.js';
import { UsageError, type Command, type Io } from '../command.js';
import { didYouMean } from '../nearest.js';
import { withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS } from '../server.js';

const OPTIONS = { ...SERVER_OPTIONS, json: { type: 'boolean' }, replace: { type: 'boolean' } } as const;

const ACTIONS = ['check', 'load', 'print'] as const;
type Action = (typeof ACTIONS)[number];

/** Looks after the library of functions that runs in the server. */
export const library: Command = {
  name: 'library',
  summary: 'load and check the functions that run in the server',
  help: `Loads the library of functions that this release calls in the server, for users who may not load it themselves, and
checks that it is there and not somebody else's.

Usage: chasquimq library <action> [options]

Actions:
  check    whether the server has it; in a cluster each master
  load     loads it where it is missing. That of another release stays, as workers of that release may still call it
  print    its text, for FUNCTION LOAD by other means; asks no server

Options:
      --replace         load takes the place of somebody else's library that has its name
      --json            JSON on stdout: {library, servers: [{server, state}]}; a state is loaded, missing, different
                        (somebody else's) or unknown (this user may not look)

Who checks needs +function|list, who loads +function|load as well, and in a cluster +cluster|slots.
Exit codes: 0 each server has the library, 1 one has it not or cannot be asked, 2 not understood.

${SERVER_HELP}
Examples:
  chasquimq library load --url redis://admin@redis.internal:6379
  chasquimq library check --json
  chasquimq library print | redis-cli -x FUNCTION LOAD
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS, 1);
    const action = actionOf(read);
    // loaded here: help does without the addon
    const { findLibrary, loadLibrary, ownLibrary } = await import('../../library/server-library.js');
    if (action === 'print') {
      io.stdout.write(ownLibrary().text);
      return 0;
    }
    const server = readServer(read, io);
    const servers = await withQueue(server, 'chasquimq', (queue) =>
      action === 'load' ? loadLibrary(queue, isGiven(read, 'replace')) : findLibrary(queue),
    );
    const { name } = ownLibrary();
    if (isGiven(read, 'json')) io.stdout.write(`${JSON.stringify({ library: name, servers }, null, 2)}\n`);
    else io.stdout.write(servers.map((each) => `${told(each, name)}\n`).join(''));
    return servers.every(({ state }) => state === 'loaded') ? 0 : 1;
  },
};

function actionOf(read: Arguments): Action {
  const [named] = read.positionals;
  if (named === undefined) throw new UsageError(`Say what to do: chasquimq library ${ACTIONS.join(' | ')}.`);
  const action = ACTIONS.find((each) => each === named);
  if (!action) throw new UsageError(`There is no action ${named}.${didYouMean(named, [...ACTIONS])}`);
  if (action !== 'load' && isGiven(read, 'replace')) throw new UsageError('--replace belongs to load.');
  if (action === 'print' && isGiven(read, 'json')) throw new UsageError('--json does not go with print.');
  return action;
}

function told({ server, state }: ServerLibrary, name: string): string {
  switch (state) {
    case 'loaded':
      return `${server}: ${name} is loaded.`;
    case 'missing':
      return `${server}: ${name} is missing. chasquimq library load brings it there.`;
    case 'different':
      return (
        `${server}: ${name} is somebody else's. Look at it by FUNCTION LIST LIBRARYNAME ${name} WITHCODE, ` +
        'and replace it by chasquimq library load --replace.'
      );
    case 'unknown':
      return `${server}: this user may not look: +function|list.`;
  }
}
