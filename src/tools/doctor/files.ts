/** Finds the code of a code base. It is read as text; nothing of it is executed. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';

const CODE = /\.[cm]?[jt]sx?$/;
const NO_CODE = /\.d\.[cm]?ts$|\.min\.js$/;
/** Folders of what others wrote, and of what is made from the code. Those whose names begin with a dot are left out, too. */
const LEFT_OUT = new Set(['node_modules', 'bower_components', 'dist', 'build', 'out', 'coverage']);
/** What is larger is no code that a person wrote. */
const MOST_BYTES = 1024 * 1024;
const AT_ONCE = 16;

export interface CodeFile {
  /** From the folder that was named. */
  readonly path: string;
  readonly text: string;
}

export interface CodeBase {
  readonly files: readonly CodeFile[];
  /** Manifests of packages. */
  readonly manifests: readonly CodeFile[];
  /** What could not be read, and why. */
  readonly unreadable: readonly string[];
}

/**
 * Reads a folder with all below it, or one file.
 * @throws Error of the file system when the path itself cannot be read
 */
export async function readCodeBase(path: string): Promise<CodeBase> {
  const unreadable: string[] = [];
  const isFolder = (await stat(path)).isDirectory();
  const paths = isFolder ? await pathsBelow(path, path, unreadable) : [path];
  return codeBaseOf(await readAll(paths, isFolder ? path : '', unreadable), unreadable);
}

/** Files that were read, the manifests apart. */
export function codeBaseOf(read: readonly CodeFile[], unreadable: readonly string[] = []): CodeBase {
  const isManifest = ({ path }: CodeFile): boolean => basename(path) === 'package.json';
  return { files: read.filter((file) => !isManifest(file)), manifests: read.filter(isManifest), unreadable };
}

async function pathsBelow(folder: string, root: string, unreadable: string[]): Promise<string[]> {
  let entries;
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (folder === root) throw error;
    unreadable.push(reasonOf(relative(root, folder), error));
    return [];
  }
  const found: string[] = [];
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    // a link may lead in a circle, and out of the code base
    if (entry.isDirectory() && !LEFT_OUT.has(entry.name) && !entry.name.startsWith('.')) {
      found.push(...(await pathsBelow(path, root, unreadable)));
    } else if (entry.isFile() && isWanted(entry.name)) found.push(path);
  }
  return found;
}

function isWanted(name: string): boolean {
  return name === 'package.json' || (CODE.test(name) && !NO_CODE.test(name));
}

async function readAll(paths: readonly string[], root: string, unreadable: string[]): Promise<CodeFile[]> {
  const files: CodeFile[] = [];
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    const some = paths.slice(at, at + AT_ONCE);
    const read = await Promise.all(some.map((path) => readOne(path, root ? relative(root, path) : path, unreadable)));
    files.push(...read.filter((file) => file !== undefined));
  }
  return files;
}

async function readOne(path: string, shown: string, unreadable: string[]): Promise<CodeFile | undefined> {
  try {
    // editors on Windows may write a mark at the head of a file, which is no JSON
    const text = (await readFile(path, 'utf8')).replace(/^\ufeff/, '');
    return text.length > MOST_BYTES ? undefined : { path: shown, text };
  } catch (error) {
    unreadable.push(reasonOf(shown, error));
    return undefined;
  }
}

function reasonOf(path: string, error: unknown): string {
  return `${path}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
}
