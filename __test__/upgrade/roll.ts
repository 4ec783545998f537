/**
 * A rolling deploy: producers and workers of two builds share a queue, one worker of each is killed meanwhile, and two more come. At its end every
 * job that was added has completed, and none was told twice.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Queue } from 'chasquimq';
import { until } from '../support/waiting.js';

const MEMBER = fileURLToPath(new URL('member.mjs', import.meta.url));
const STATES = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children', 'failed'] as const;
const WAIT_MS = 100_000;

type Said = { ended: string } | { error: string } | { added: string[] };

export interface Account {
  added: number;
  /** Added, and not among the completed ones at the end. */
  lost: string[];
  /** Told as completed more than once. */
  doubled: string[];
  errors: string[];
}

export interface Deploy {
  /** What each build is imported by. */
  modules: readonly [string, string];
  connection: object;
  queueName: string;
  /** Of each producer. */
  rounds: number;
}

export async function roll({ modules, connection, queueName, rounds }: Deploy): Promise<Account> {
  const ended = new Map<string, number>();
  const [added, errors, members]: [string[], string[], ChildProcess[]] = [[], [], []];
  const start = (role: 'worker' | 'producer', module: string) => {
    const env = { MODULE: module, CONNECTION: JSON.stringify(connection), QUEUE: queueName, ROUNDS: String(rounds) };
    const member = fork(MEMBER, [role], { env: { ...process.env, ...env, LABEL: `p${members.length}` } });
    members.push(member);
    member.on('message', (said: Said) => {
      if ('ended' in said) ended.set(said.ended, (ended.get(said.ended) ?? 0) + 1);
      else if ('added' in said) added.push(...said.added);
      else errors.push(said.error);
    });
    return member;
  };
  const queue = new Queue(queueName, { connection });
  try {
    const workers = [...modules, ...modules].map((module) => start('worker', module));
    const producers = [...modules, ...modules].map((module) => start('producer', module));
    const produced = Promise.all(producers.map((producer) => once(producer, 'exit')));
    await until('half of the jobs to end', () => ended.size > 20 * rounds, WAIT_MS);
    // one of each
    for (const worker of workers.slice(1, 3)) worker.kill('SIGKILL');
    for (const module of modules) workers.push(start('worker', module));
    await produced;
    await until('all jobs to end', async () => (await queue.getJobCountByTypes(...STATES)) === 0, WAIT_MS);

    const completed = new Set((await queue.getCompleted(0, -1)).map(({ id }) => id));
    const doubled = [...ended].filter(([, times]) => times > 1).map(([id]) => id);
    return { added: added.length, lost: added.filter((id) => !completed.has(id)), doubled, errors };
  } finally {
    for (const member of members) member.kill('SIGKILL');
    await queue.obliterate({ force: true });
    await queue.close();
  }
}
