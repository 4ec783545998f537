/** What this machine can get to run a program on, of all that a release is for. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bun, deno, oldestBun } from '../support/runtimes.js';

const run = promisify(execFile);
const OLDEST_NODE = 20;

export interface Runtime {
  readonly title: string;
  readonly library: 'glibc' | 'musl' | 'its own';
  /** What a program is run with; or why there is none. */
  readonly command: readonly string[];
  readonly lack?: string;
}

/** What C library the programs of this system use. */
export const OWN_LIBRARY = process.platform !== 'linux' ? 'its own' : isGlibc() ? 'glibc' : 'musl';

function isGlibc(): boolean {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime !== undefined;
}

/** Node of each major, as packages of the registry that this machine uses bring it, Bun and Deno as they are installed. */
export async function runtimesHere(folder: string): Promise<Runtime[]> {
  const others: [string, string, string[]][] = [
    ['Bun', bun, []],
    ['Bun, the oldest', oldestBun, []],
    ['Deno', deno, ['run', '--allow-all']],
  ];
  const installed = others.map(async ([title, file, args]): Promise<Runtime> => {
    const { stdout } = await run(file, ['--version']);
    const version = /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? '';
    return { title: `${title} ${version}`, library: OWN_LIBRARY, command: [file, ...args] };
  });
  return [...(await nodes(folder)), ...(await Promise.all(installed))];
}

async function nodes(folder: string): Promise<Runtime[]> {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${system}-${process.arch}`;
  const own: Runtime = { title: `Node ${process.version.slice(1)}`, library: OWN_LIBRARY, command: [process.execPath] };
  if (OWN_LIBRARY === 'musl') return [own, lacking('Node, other majors', OWN_LIBRARY, 'no package brings them')];
  const told = await run('npm', ['view', name, 'versions', '--json']).catch((error: Error) => error);
  if (told instanceof Error) return [own, lacking('Node, other majors', OWN_LIBRARY, firstLine(told))];
  const found = newestOfEachMajor(JSON.parse(told.stdout) as string[]);
  return Promise.all(found.map((version) => nodeOf(name, version, folder)));
}

async function nodeOf(name: string, version: string, folder: string): Promise<Runtime> {
  const title = `Node ${version}`;
  const place = join(folder, `node-${version}`);
  const got = await run('npm', [
    'install',
    '--no-save',
    '--ignore-scripts',
    '--prefix',
    place,
    `${name}@${version}`,
  ]).catch((error: Error) => error);
  if (got instanceof Error) return lacking(title, OWN_LIBRARY, firstLine(got));
  const file = join(place, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  return { title, library: OWN_LIBRARY, command: [file] };
}

/** Of versions in any order, from the oldest major that the package runs on; a candidate only where there is nothing else. */
export function newestOfEachMajor(versions: readonly string[]): string[] {
  const parts = (version: string) => version.split(/[.-]|(?=rc)/).map(Number);
  const compare = (a: string, b: string) => {
    const [left, right] = [parts(a), parts(b)];
    const isRelease = Number(!/rc|-/.test(a)) - Number(!/rc|-/.test(b));
    return isRelease || (left[1] ?? 0) - (right[1] ?? 0) || (left[2] ?? 0) - (right[2] ?? 0);
  };
  const majors = new Map<number, string>();
  for (const version of [...versions].sort(compare)) majors.set(parts(version)[0] ?? 0, version);
  return [...majors.entries()]
    .filter(([major]) => major >= OLDEST_NODE)
    .sort(([a], [b]) => a - b)
    .map(([, version]) => version);
}

export const lacking = (title: string, library: Runtime['library'], lack: string): Runtime => ({
  title,
  library,
  command: [],
  lack,
});

export const firstLine = ({ message }: Error): string =>
  message.split('\n').find((line) => /^(npm )?\w*error\b/i.test(line)) ?? message.slice(0, 120);
