/** What a job knows of its children. */
import type { NativeChildPage, NativeChildren, NativeQueue } from '../native/types.js';
import type { DependenciesOpts, DependencyOpts } from '../options/job.js';

/** In the order in which their numbers are shown. */
const KINDS = ['processed', 'unprocessed', 'ignored', 'failed'] as const;

type Kind = (typeof KINDS)[number];

/** In the order in which pages are shown. */
const PAGED = ['processed', 'ignored', 'failed', 'unprocessed'] as const;

/** Children by how they ended, with the cursors of the next pages where pages were asked for. */
export interface Dependencies {
  nextFailedCursor?: number;
  failed?: string[];
  nextIgnoredCursor?: number;
  /* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's type: the results are of any type */
  ignored?: Record<string, any>;
  nextProcessedCursor?: number;
  processed?: Record<string, any>;
  /* eslint-enable @typescript-eslint/no-explicit-any */
  nextUnprocessedCursor?: number;
  unprocessed?: string[];
}

const NEXT = {
  processed: 'nextProcessedCursor',
  unprocessed: 'nextUnprocessedCursor',
  ignored: 'nextIgnoredCursor',
  failed: 'nextFailedCursor',
} as const;

/** Children of a page, when none is asked for. */
const PAGE = 20;

/** In the order in which they are shown when nothing is asked for in particular. */
const ALL: NativeChildPage[] = (['processed', 'unprocessed', 'failed', 'ignored'] as const).map((kind) => ({
  kind,
  cursor: 0,
  count: 0,
}));

/** All children, or a page of each kind that the options name. */
export async function readDependencies(native: NativeQueue, id: string, opts: DependenciesOpts): Promise<Dependencies> {
  const kinds = PAGED.filter((kind) => opts[kind]);
  const paged = kinds.length > 0;
  const pages = paged ? kinds.map((kind) => pageOf(kind, opts[kind] as DependencyOpts)) : ALL;
  const found = await native.getChildren(id, pages);
  const dependencies: Dependencies = {};
  pages.forEach(({ kind }, i) => {
    dependencies[kind as Kind] = decode(kind as Kind, found[i]) as never;
    if (paged) dependencies[NEXT[kind as Kind]] = found[i].cursor;
  });
  return dependencies;
}

function pageOf(kind: Kind, { cursor, count }: DependencyOpts): NativeChildPage {
  // cursors come as texts, too
  return { kind, cursor: Number(cursor ?? 0), count: Math.max(count ?? PAGE, 1) };
}

function decode(kind: Kind, { values }: NativeChildren): string[] | Record<string, unknown> {
  if (kind === 'processed') return pairs(values, (text) => JSON.parse(text) as unknown);
  return kind === 'ignored' ? pairs(values, (text) => text) : values;
}

/** An object of keys and values that come in turn. */
export function pairs<T>(values: readonly string[], decoded: (text: string) => T): Record<string, T> {
  const object: Record<string, T> = {};
  for (let i = 0; i < values.length; i += 2) object[values[i]] = decoded(values[i + 1]);
  return object;
}

/** Numbers of children of the kinds that the options name, in their order, or of all. */
export async function countDependencies(
  native: NativeQueue,
  id: string,
  opts: Partial<Record<Kind, boolean>>,
): Promise<Partial<Record<Kind, number>>> {
  const wanted = (Object.keys(opts) as Kind[]).filter((kind) => opts[kind] && KINDS.includes(kind));
  const kinds = wanted.length > 0 ? wanted : KINDS;
  const counts = await native.getChildren(
    id,
    kinds.map((kind) => ({ kind, cursor: 0, count: -1 })),
  );
  return Object.fromEntries(kinds.map((kind, i) => [kind, counts[i].cursor]));
}

/** Why the children failed that count as done all the same. */
export async function readIgnored(native: NativeQueue, id: string): Promise<Record<string, string>> {
  const [{ values }] = await native.getChildren(id, [{ kind: 'ignored', cursor: 0, count: 0 }]);
  return pairs(values, (text) => text);
}

/** What the children that completed returned, in the order in which the server keeps them. */
export async function readReturned<T>(native: NativeQueue, id: string): Promise<Record<string, T>> {
  const [{ values }] = await native.getChildren(id, [{ kind: 'processed', cursor: 0, count: 0 }]);
  return pairs(values, (text) => JSON.parse(text) as T);
}
