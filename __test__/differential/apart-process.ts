/** A process with one worker, of one program after the other: apart.ts has what it is asked for, and what it tells. */
import type { Queue, Worker } from 'bullmq';
import { watchLoop } from '../life/programs/loop.mjs';
import { sharedClock } from '../support/shared-clock.js';
import type { Ear, Hands, Post } from './apart.js';
import { addChild, Handlers } from './handler.js';
import type { Scripts } from './handler.js';
import { load } from './library.js';
import { Line } from './line.js';
import { watchWorker } from './observe.js';
import { openWorker } from './open-worker.js';
import { seenAtStart } from './runs.js';
import { messageOf } from './values.js';

const { lib, connection } = await load(process.argv[2] ?? 'bullmq');
const line = new Line<Ear & { ready(): void }>(process);
process.on('unhandledRejection', (reason) => line.tell('unhandled', `rejection: ${messageOf(reason)}`));
process.on('uncaughtException', (error) => line.tell('unhandled', `exception: ${messageOf(error)}`));
process.on('disconnect', () => process.exit());

class Served {
  readonly scripts: Scripts;
  readonly worker: Worker;
  readonly #queues: Queue[];
  #runs = 0;
  #running = 0;

  constructor({ plan, queues, prefix, scripts }: Post) {
    const base = { connection, prefix };
    this.scripts = new Map(scripts);
    this.#queues = Array.from({ length: queues }, (_, i) => new lib.Queue(`q${i}`, base));
    const tellError = (error: Error) => line.tell('error', messageOf(error));
    for (const queue of this.#queues) queue.on('error', tellError);
    this.worker = openWorker(lib, plan, this.#handlers(), base);
    this.worker.on('error', tellError);
    watchWorker(this.worker, (text, name) => line.tell('heard', text, name));
  }

  #handlers(): Handlers {
    return new Handlers({
      lib,
      queues: this.#queues,
      signals: { wait: (name) => line.ask('wait', name), give: (name) => line.tell('give', name) },
      scripts: this.scripts,
      book: { begin: (job) => this.#begin(job.name, job.attemptsStarted, seenAtStart(job)) },
      spaced: false,
      addJob: async (queue, plan, parent) => {
        await line.ask('know', plan.key, this.scripts.get(plan.key) ?? []);
        const { id = '' } = await addChild(this.#queues[queue], plan, parent);
        line.tell('added', plan.key, queue, id);
      },
    });
  }

  /** Other processes may have run the job before: which run it is, the job says. */
  #begin(name: string, started: number, text: string) {
    const run = ++this.#runs;
    this.#running++;
    line.tell('began', run, name, text, sharedClock());
    return {
      at: started - 1,
      note: (more: string) => line.tell('noted', run, more),
      end: () => {
        this.#running--;
        line.tell('ended', run, sharedClock());
      },
    };
  }

  async leave(): Promise<number> {
    await Promise.all([this.worker.close(true), ...this.#queues.map((queue) => queue.close())]);
    return this.#running;
  }
}

let served: Served | undefined;
const worker = (): Worker => {
  if (!served) throw new Error('serves no program');
  return served.worker;
};

const hands: Hands = {
  async start(post) {
    served = new Served(post);
    await served.worker.waitUntilReady();
  },
  know(scripts) {
    for (const [name, script] of scripts) served?.scripts.set(name, script);
  },
  pause: () => worker().pause(true),
  resume: () => worker().resume(),
  close: (force) => worker().close(force),
  cancel: (id, reason) => worker().cancelJob(id, reason),
  async tellAll() {
    // what has come in by now is read in this turn, and told in the next one
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
  },
  async leave() {
    const running = (await served?.leave()) ?? 0;
    served = undefined;
    return running;
  },
};

line.serve(hands);
watchLoop((from, to) => line.tell('late', from, to));
line.tell('ready');
