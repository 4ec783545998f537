/** What a system went through, as text. */
import { writeText } from '../files.js';
import type { Machine, SourceState } from '../machine.js';
import { markdownTable } from '../markdown.js';
import type { Account } from './account.js';

/** A way there or back. */
export interface Way {
  readonly jobs: number;
  readonly seconds: number;
  readonly longestScriptMs: number;
  /** Jobs that workers of each library ran, and that were added, meanwhile. */
  readonly ranByTheirs: number;
  readonly ranByOurs: number;
  readonly added: number;
}

export interface MigrateReport {
  readonly startedAt: string;
  readonly seconds: number;
  readonly machine: Machine;
  readonly source: SourceState;
  readonly server: string;
  readonly bullmq: string;
  readonly load: readonly [start: string, end: string];
  readonly there: Way;
  readonly back: Way;
  readonly accounts: Readonly<Record<'before' | 'here' | 'after', Omit<Account, 'seen'>>>;
  /** What must all be 0. */
  readonly wrong: Readonly<Record<string, number>>;
}

export function textOf(report: MigrateReport): string {
  const { machine, source, accounts, there, back, load, wrong } = report;
  const about = [
    `run of ${report.startedAt}, ${report.seconds} s, commit ${source.commit}`,
    `bullmq ${report.bullmq}, ${report.server}, Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB; producer, workers of both, the command and the server share them`,
    `load average at the start ${load[0]}, at the end ${load[1]}`,
  ];
  const isFine = Object.values(wrong).every((count) => count === 0);
  return [
    '# A BullMQ system that moves while it runs, and moves back',
    about.map((line) => `- ${line}`).join('\n'),
    '## The two ways',
    markdownTable([
      ['', 'jobs', 'seconds', 'jobs a second', 'longest script, ms', 'added meanwhile', 'run by BullMQ', 'run here'],
      rowOf('there', there),
      rowOf('back', back),
    ]),
    '## What there was',
    markdownTable([
      ['', 'on BullMQ, before', 'here', 'on BullMQ, after'],
      ...[...statesOf(report), ...(['jobs', 'schedulers', 'kept', 'digest'] as const)].map((name) => [
        name,
        ...[accounts.before, accounts.here, accounts.after].map((account) =>
          figure(name in account ? account[name as 'jobs'] : (account.states[name] ?? 0)),
        ),
      ]),
    ]),
    '`kept` jobs are those that do not run meanwhile; the digest is of all that is known of each, in its state. The other jobs run, each once.',
    `## ${isFine ? 'The accounts agree' : 'The accounts do not agree'}`,
    markdownTable([['', 'jobs'], ...Object.entries(wrong).map(([name, count]) => [name, figure(count)])]),
  ].join('\n\n');
}

function statesOf({ accounts }: MigrateReport): string[] {
  return [...new Set(Object.values(accounts).flatMap(({ states }) => Object.keys(states)))];
}

function rowOf(name: string, way: Way): string[] {
  const rate = Math.round(way.jobs / Math.max(way.seconds, 0.001));
  const figures = [way.jobs, way.seconds, rate, way.longestScriptMs, way.added, way.ranByTheirs, way.ranByOurs];
  return [name, ...figures.map(figure)];
}

const figure = (value: number) => value.toLocaleString('en-US', { maximumFractionDigits: 1 });

/** @returns the path written */
export function writeReport(report: MigrateReport): string {
  return writeText(`migrate-${report.startedAt.slice(0, 10)}-${report.source.commit}`, textOf(report));
}
