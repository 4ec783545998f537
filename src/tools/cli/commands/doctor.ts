import { aclRule } from '../../doctor/acl.js';
import { examine, type Examination } from '../../doctor/examine.js';
import { readCodeBase } from '../../doctor/files.js';
import { judgeLoaders, judgeServer, type ServerFinding } from '../../doctor/server.js';
import { isGiven, readArguments, type Arguments } from '../arguments.js';
import { Failure, UsageError, type Command, type Io } from '../command.js';
import { examined, granted, judged, verdict } from '../doctor-text.js';
import { withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean' },
  all: { type: 'boolean' },
  strict: { type: 'boolean' },
  'no-server': { type: 'boolean' },
} as const;

/** Says what moving from BullMQ means for a code base and a server. */
export const doctor: Command = {
  name: 'doctor',
  summary: 'what will behave differently for a code base and a server that move from BullMQ',
  help: `Reads a code base and a server, and says what will behave differently after a move from BullMQ, which options have
no effect, what BullMQ 5 had and 6 has not, which packages look at BullMQ's keys, whether the server fits, and what to
grant.

Usage: chasquimq doctor [path] [options]

The path is a folder or a file (.). Code is read as text and never run: .ts .tsx .js .jsx and their .mts .cts .mjs .cjs,
without node_modules, dist, build, out, coverage and folders whose names begin with a dot. It is taken apart into words,
not understood: types and what variables hold are not known, so a finding is a place to look at, and code that hides
what it calls is not found. Looked at are files that import BullMQ or ChasquiMQ, and those that import such a file.

The server is asked when --url or REDIS_URL names one. Nothing is written to it.

Options:
      --all             differences without an impact, too, and those that no reader of code can see in full
      --no-server       asks no server
      --strict          exit code 1 when something breaks, or the server does not fit
      --json            JSON on stdout: {path, files, concerned, bullmq, findings, unreadable, server, acl}

${SERVER_HELP}
Examples:
  chasquimq doctor
  chasquimq doctor services/mail --url redis://redis.internal:6379
  chasquimq doctor --json --strict | jq '.findings[] | select(.impact == "breaking")'
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS, 1);
    const path = read.positionals[0] ?? '.';
    const server = serverOf(read, io);
    const found = examine(await readPath(path));
    const answer = server && (await ask(server));
    const rule = aclRule(server?.prefix ?? prefixOf(read), { cluster: server?.isCluster ?? isGiven(read, 'cluster') });
    if (isGiven(read, 'json')) {
      const asked = server && answer && { url: server.shown, ...answer };
      io.stdout.write(`${JSON.stringify({ path, ...found, server: asked ?? null, acl: rule.join(' ') }, null, 2)}\n`);
    } else {
      const isAll = isGiven(read, 'all');
      const asked = server && answer ? { shown: server.shown, ...answer } : undefined;
      io.stdout.write([examined(path, found, isAll), judged(asked), granted(rule), verdict(found)].join('\n'));
    }
    if (answer?.error !== undefined) throw new Failure(answer.error);
    return isGiven(read, 'strict') && isBroken(found, answer?.findings ?? []) ? 1 : 0;
  },
};

/** The server to ask, if one is named. */
function serverOf(read: Arguments, io: Io): Server | undefined {
  const isNamed = read.values.url !== undefined || Boolean(io.env.REDIS_URL);
  if (isGiven(read, 'no-server')) {
    if (read.values.url !== undefined) throw new UsageError('--no-server and --url exclude each other.');
    return undefined;
  }
  return isNamed ? readServer(read, io) : undefined;
}

function prefixOf({ values }: Arguments): string {
  return typeof values.prefix === 'string' ? values.prefix : 'bull';
}

async function readPath(path: string): ReturnType<typeof readCodeBase> {
  try {
    return await readCodeBase(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file or folder' : code === 'EACCES' ? 'it may not be read' : message;
    throw new Failure(`${path}: ${reason}.`);
  }
}

interface Answer {
  readonly findings: readonly ServerFinding[];
  /** Why it could not be asked; the code base was read all the same. */
  readonly error?: string;
}

async function ask(server: Server): Promise<Answer> {
  // an old server is to be judged, too
  const anyVersion = { ...server, connection: { ...server.connection, skipVersionCheck: true } };
  try {
    const { functionLoaders } = await import('../../library/server-library.js');
    return await withQueue(anyVersion, 'chasquimq', async (queue) => {
      const info = await (await queue.getBackend().client).info();
      return { findings: [...judgeServer(info, server.isCluster), ...judgeLoaders(await functionLoaders(queue))] };
    });
  } catch (error) {
    if (error instanceof Failure) return { findings: [], error: error.message };
    throw error;
  }
}

/** What no reader of code can see would break every code base. */
function isBroken({ findings }: Examination, server: readonly ServerFinding[]): boolean {
  const seen = findings.filter(({ places }) => places.length > 0);
  return seen.some(({ impact }) => impact === 'breaking') || server.some((each) => each.verdict === 'unfit');
}
