/** How `migrate` tells people what it is about to do, and what it did. */
import { PLACES, reasonOf, type QueueAccount } from '../migrate/account.js';
import type { Survey } from '../migrate/mover.js';
import { count, plain, table } from './text.js';

export const MODES = ['dry-run', 'follow', 'back', 'verify'] as const;
export type Mode = 'move' | (typeof MODES)[number];

/** What a move did to one queue, and where that leaves it. */
export interface Outcome {
  readonly account: QueueAccount;
  /** Jobs that are still on the other side, by place. */
  readonly left: Readonly<Record<string, number>>;
  /** Jobs that are here, by state. */
  readonly here: Readonly<Record<string, number>>;
  /** Job schedulers that are still on the other side. */
  readonly schedulers: number;
  /** Job schedulers that are here. */
  readonly schedulersHere: number;
  /** Of those that were to go back, the ids of paused ones, which BullMQ does not know. */
  readonly paused: readonly string[];
}

/** Ids that are shown of those that stay. */
const SHOWN_IDS = 5;

export function inPlaces({ places, counts }: Survey, wanted: readonly string[]): number {
  return places.reduce((jobs, place, at) => jobs + (wanted.includes(place) ? (counts[at] ?? 0) : 0), 0);
}

/** BullMQ's queues, one a line. */
export function listedThere(names: readonly string[], surveys: readonly Survey[]): string[] {
  const rows = surveys.map((survey, i) => [
    plain(names[i] ?? '', 60),
    count(inPlaces(survey, PLACES)),
    count(inPlaces(survey, ['active'])),
    count(survey.schedulers),
    survey.version === '' ? 'unknown' : plain(survey.version, 60),
  ]);
  return table(['QUEUE', '>JOBS', '>ACTIVE', '>SCHEDULERS', 'WRITTEN BY'], rows);
}

/** Ours, one a line. */
export function listedHere(names: readonly string[], counts: readonly Readonly<Record<string, number>>[]): string[] {
  const rows = counts.map((states, i) => {
    const { active = 0 } = states;
    return [plain(names[i] ?? '', 60), count(sum(states) - active), count(active)];
  });
  return table(['QUEUE', '>JOBS', '>ACTIVE'], rows);
}

export function linesOf(outcome: Outcome, mode: Mode, seconds: number): string[] {
  const { account } = outcome;
  const lines = [`${plain(account.name)}: ${headline(account, mode, seconds)}`];
  if (mode === 'verify') lines.push(...table(['', 'BULLMQ', 'HERE'], sideBySide(outcome)).map((line) => `  ${line}`));
  else if (account.total > 0) {
    const parts = [...account.moved].map(([place, jobs]) => `${count(jobs)} ${place}`);
    if (account.schedulers > 0) parts.push(`with ${count(account.schedulers)} job schedulers`);
    lines.push(`  ${parts.join(', ')}`);
  }
  lines.push(...linesOfSettings(account, mode), ...linesOfContents(account));
  lines.push(...linesOfWhatStays(outcome, mode));
  if (account.openChildren > 0) {
    lines.push(
      `  parents that were moved wait for ${count(account.openChildren)} children that are BullMQ's still: run it again when they have ended`,
    );
  }
  if (!account.mayScan) {
    lines.push('  this user may not SCAN: deduplication ids whose jobs are gone, but whose time is not over, stay');
  }
  return lines;
}

function linesOfWhatStays({ account, left, schedulers, paused }: Outcome, mode: Mode): string[] {
  const [lines, isBack] = [[] as string[], mode === 'back'];
  const { active = 0 } = left;
  if (active > 0) lines.push(`  ${count(active)} jobs stay: ${isBack ? 'active here' : "run by BullMQ's workers now"}`);
  // the others are named by their jobs
  const withoutJob = schedulers - (account.stays.get('scheduler')?.length ?? 0) - paused.length;
  if (paused.length > 0) {
    const why = 'they are paused, and BullMQ would run them: resume or remove them here';
    lines.push(`  ${count(paused.length)} job schedulers stay: ${why} (${someOf(paused)})`);
  }
  if (withoutJob > 0 && mode !== 'dry-run' && mode !== 'verify') {
    lines.push(`  ${count(withoutJob)} job schedulers stay: they have no job that waits for its time`);
  }
  for (const [reason, ids] of account.stays) {
    const why = reasonOf(reason, isBack ? 'in BullMQ' : 'here');
    lines.push(`  ${count(ids.length)} jobs stay: they ${why} (${someOf(ids)})`);
  }
  return lines;
}

function linesOfSettings({ settings }: QueueAccount, mode: Mode): string[] {
  const taken = Object.entries(settings).map(([name, value]) =>
    name === 'paused' ? name : plain(`${name} ${value}`, 60),
  );
  const lines = taken.length > 0 ? [`  settings: ${taken.join(', ')}`] : [];
  if ('paused' in settings && mode !== 'back')
    lines.push('  the queue was paused, and is: resume it when your workers are ready');
  return lines;
}

function linesOfContents({ compared, wentOn, differ }: QueueAccount): string[] {
  if (compared === 0) return [];
  const ran = wentOn > 0 ? `, of which ${count(wentOn)} have run meanwhile` : '';
  if (differ.size === 0) return [`  ${count(compared)} jobs compared${ran}: all are as they were`];
  const fields = [...new Set([...differ.values()].flat())].sort();
  return [
    `  ${count(compared)} jobs compared${ran}: ${count(differ.size)} are not as they were (${someOf([...differ.keys()])}), in ${fields.join(', ')}`,
  ];
}

function someOf(ids: readonly string[]): string {
  const shown = ids.slice(0, SHOWN_IDS).map((id) => plain(id, 60));
  return `${shown.join(', ')}${ids.length > SHOWN_IDS ? ', ...' : ''}`;
}

function headline({ total, stays }: QueueAccount, mode: Mode, seconds: number): string {
  if (mode === 'dry-run') return `${count(total)} jobs would move`;
  if (mode === 'verify') {
    const twice = stays.get('exists')?.length ?? 0;
    return twice > 0 ? `${count(twice)} ids are on both sides` : 'no id is on both sides';
  }
  const where = mode === 'back' ? ' back to BullMQ' : '';
  return `${count(total)} jobs moved${where} in ${seconds.toFixed(1)} s`;
}

function sideBySide({ left: there, here, schedulers, schedulersHere }: Outcome): string[][] {
  const names: readonly (readonly [string, readonly string[]])[] = [
    ['waiting', ['wait', 'paused']],
    ...['active', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed'].map(
      (name) => [name, [name]] as const,
    ),
  ];
  const rows = names.map(([name, places]) => [
    name,
    count(places.reduce((jobs, place) => jobs + (there[place] ?? 0), 0)),
    count(here[name] ?? 0),
  ]);
  return [...rows, ['job schedulers', count(schedulers), count(schedulersHere)]];
}

export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, jobs) => all + jobs, 0);
}
