/** Whether more jobs of a group ran at once than its concurrency lets. */
import type { JobAccount, Moved } from './jobs.js';

/** Jobs of these kinds have a group, called like the kind (programs/plans.mjs), of which every worker lets so many run (programs/worker.mjs). */
const TENANT = /^tenant-\d$/;
const MOST_AT_ONCE = 2;

interface Span {
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Only runs count whose outcome is recorded: their workers held the job from before the handler began until after it ended, whatever other workers took it for
 * lost meanwhile.
 */
export function crowdsIn(jobs: Iterable<JobAccount>): string[] {
  const spans = new Map<string, Span[]>();
  for (const { key, kind, ends, runs } of jobs) {
    const run = TENANT.test(kind) ? runs.get(ends[0]?.text.split(' ').at(-2) ?? '') : undefined;
    if (run?.endedAt === undefined) continue;
    spans.set(kind, [...(spans.get(kind) ?? []), { key, from: run.at, to: run.endedAt }]);
  }
  return [...spans].flatMap(([kind, all]) => crowdsOf(kind, all));
}

/**
 * The same by the server alone, in the order in which it has carried out what it tells.
 * @param kindOf undefined: of which kind a job of that id is, is not known
 */
export function crowdsInLog(moves: Iterable<Moved>, kindOf: (id: string) => string | undefined): string[] {
  const active = new Map<string, Set<string>>();
  const found: string[] = [];
  for (const { id, to } of moves) {
    const kind = kindOf(id) ?? '';
    if (!TENANT.test(kind)) continue;
    const ids = active.get(kind) ?? new Set();
    active.set(kind, ids);
    ids.delete(id);
    if (to === 'active') ids.add(id);
    if (ids.size > MOST_AT_ONCE) found.push(`${kind} by the event log: ${[...ids].join(' ')} are active`);
  }
  return found;
}

function crowdsOf(kind: string, spans: Span[]): string[] {
  // one that was over in the millisecond in which it began may have ended before others that began in it
  spans.sort((one, other) => one.from - other.from || one.to - other.to);
  const found: string[] = [];
  let running: Span[] = [];
  for (const span of spans) {
    running = [...running.filter(({ to }) => to > span.from), span];
    if (running.length > MOST_AT_ONCE)
      found.push(`${kind} at ${span.from}: ${running.map(({ key, from, to }) => `${key} ${from}..${to}`).join(', ')}`);
  }
  return found;
}
