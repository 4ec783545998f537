/** Carries out one program on one library, and tells what was to be seen. */
import type { EventEmitter } from 'node:events';
import type { FlowJob, FlowProducer, Job, JobNode, Queue, QueueEvents, RepeatOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Library } from '../support/libraries.js';
import { sleep } from '../support/waiting.js';
import type { Pool } from './apart.js';
import { Clock } from './clock.js';
import { addChild, call, Handlers } from './handler.js';
import type { Scripts } from './handler.js';
import { fieldsOf, Observer } from './observe.js';
import type { Base } from './open-worker.js';
import type { Action, JobPlan, Observation, Program, SeenJob, Step } from './program.js';
import { Runs } from './runs.js';
import { settle } from './settle.js';
import { planOf } from './plans.js';
import { Signals } from './signals.js';
import { isClose, isOfTime, iterationText, timeless, withoutDelays } from './times.js';
import { decode, messageOf, shown, UUID } from './values.js';
import { Watch } from './watch.js';
import { Workers } from './workers.js';

const HELD_MS = 15_000;
const CLOSE_MS = 12_000;
const MARK_MS = 20_000;

export interface Place extends Base {
  readonly lib: Library;
  /** It ranks jobs that ended in one millisecond by their ids: which of them it keeps is then a question of speed. */
  readonly ranksByMillisecond: boolean;
  /** Where it has none, jobs of groups are added without, and steps about groups do nothing but to remove jobs. */
  readonly hasGroups: boolean;
  /** Rejections that nobody handled, and exceptions that nobody caught, since the program began. */
  readonly unhandled: string[];
  /** Processes for workers that are apart. */
  readonly pool: Pool;
  /** Servers on which it is watched that no job waits beside an idle worker. */
  readonly watched?: readonly Redis[];
}

export async function execute(program: Program, place: Place): Promise<Observation> {
  const world = new World(program, place);
  await world.open();
  try {
    for (const [index, step] of program.steps.entries()) await world.carryOut(step, index);
    await world.end();
    return await world.observation();
  } finally {
    await world.close();
  }
}

interface Known {
  readonly queue: number;
  readonly id: string;
}

/** A job that was taken by hand. */
interface Taken {
  readonly job: Job;
  readonly token: string;
  readonly worker: number;
  moved?: boolean;
}

/** It goes by when jobs ended: neither library ranks those of one millisecond by more, but where a rule keeps a number of them. */
const goesByEnds = (step: Step): boolean => 'method' in step && step.method === 'retryJobs';

class World {
  readonly #queues: Queue[] = [];
  readonly #events: QueueEvents[] = [];
  readonly #flows: FlowProducer;
  readonly #observer = new Observer();
  readonly #signals = new Signals();
  readonly #scripts: Scripts = new Map();
  readonly #runs = new Runs();
  readonly #workers: Workers;
  readonly #watch: Watch | undefined;
  readonly #jobs = new Map<string, Known>();
  /** Names of jobs of schedulers, and whether their iterations follow each other closely. */
  readonly #scheduled = new Map<string, boolean>();
  readonly #taken = new Map<string, Taken>();
  /** Jobs that BullMQ removed in the place of a group. */
  readonly #deleted = new Set<string>();
  readonly #answers: Record<string, string> = {};
  readonly #flowErrors: string[] = [];
  readonly #base: Base;
  readonly #clock = new Clock();
  #marks = 0;

  constructor(
    private readonly program: Program,
    private readonly place: Place,
  ) {
    const { lib, connection, prefix } = place;
    this.#base = { connection, prefix };
    for (let i = 0; i < program.queues; i++) {
      this.#queues.push(new lib.Queue(`q${i}`, this.#base));
      this.#events.push(new lib.QueueEvents(`q${i}`, { ...this.#base, lastEventId: '0-0' }));
    }
    this.#flows = new lib.FlowProducer(this.#base);
    const handlers = new Handlers({
      lib,
      queues: this.#queues,
      signals: this.#signals,
      scripts: this.#scripts,
      book: this.#runs,
      spaced: program.ordered === true && (place.ranksByMillisecond || program.steps.some(goesByEnds)),
      addJob: (queue, plan, parent) => this.#addChild(queue, plan, parent),
    });
    const { unhandled, pool, watched } = place;
    this.#workers = new Workers({
      ...{ program, lib, base: this.#base, pool, handlers, unhandled },
      ...{ scripts: this.#scripts, signals: this.#signals, runs: this.#runs, observer: this.#observer },
      normalError: (message) => this.#normalError(message),
      remember: (name, queue, id) => void this.#jobs.set(name, { queue, id }),
    });
    this.#watch = watched && Watch.of(program, watched);
  }

  async open(): Promise<void> {
    const note = (error: Error) => void this.#flowErrors.push(messageOf(error));
    for (const opened of [...this.#queues, ...this.#events, this.#flows]) (opened as EventEmitter).on('error', note);
    this.#events.forEach((events, index) => this.#observer.watchQueue(index, events));
    await Promise.all([...this.#queues, ...this.#events].map((opened) => opened.waitUntilReady()));
  }

  /** What a step answers is noted under its number and what it is. */
  async carryOut(step: Step, index: number): Promise<void> {
    const label = 'method' in step ? `${step.do} ${step.method}` : step.do;
    const at = `${index} ${label}`;
    try {
      const answer = await this.#do(step);
      if (answer !== undefined) this.#answers[at] = answer;
    } catch (error) {
      const text = this.#normal(messageOf(error));
      // of a job without a parent BullMQ's script asks for a key of no name, which a node of a cluster does not have
      const isNoParent = label === 'job removeChildDependency' && text.includes('attempted to access a non local key');
      this.#answers[at] =
        `rejects ${isNoParent ? 'Missing key for parent job undefined. removeChildDependency' : text}`;
    }
  }

  async #do(step: Step): Promise<string | undefined> {
    switch (step.do) {
      case 'start':
        return await this.#workers.start(step.worker).then(() => undefined);
      case 'stop':
        return await this.#workers.stop(step.worker, step.force);
      case 'kill':
        return await this.#workers.kill(step.worker);
      case 'pauseWorker':
        return await this.#workers.pause(step.worker);
      case 'resumeWorker':
        return await this.#workers.resume(step.worker);
      case 'add':
        return await this.#add(step);
      case 'schedule':
        return await this.#schedule(step);
      case 'clock':
        this.#clock.leap(step.ms);
        return undefined;
      case 'settle':
        return await this.#settle();
      case 'held':
        return await this.#held(step);
      case 'signal':
        this.#signals.give(step.signal);
        return undefined;
      case 'cancel':
        return await this.#cancel(step);
      case 'queue':
        return await this.#callQueue(step);
      case 'group':
        await this.#callGroup(step);
        return undefined;
      case 'job':
        return await this.#callJob(step);
      case 'take':
        return await this.#take(step);
      case 'finish':
        return await this.#finish(step);
    }
  }

  async #add({ queue, how, jobs }: Extract<Step, { do: 'add' }>): Promise<string> {
    const all = jobs.flatMap((plan) => this.#expand(plan, queue));
    await this.#workers.know(scriptsOf(all));
    if (how === 'flow') {
      const trees: JobNode[] = [];
      for (const plan of all) trees.push(await this.#flows.add(this.#tree(plan, queue)));
      trees.forEach((tree) => this.#rememberTree(tree));
      return shown(trees.length);
    }
    const calls = all.map((plan) => ({ name: plan.key, data: this.#data(plan, queue), opts: this.#opts(plan) }));
    const added: Job[] = [];
    for (const some of how === 'bulk' ? [calls] : calls.map((one) => [one])) {
      const heard = this.#watch?.sends(some.map(({ name }) => name));
      if (how === 'bulk') added.push(...(await this.#queues[queue].addBulk(some)));
      else for (const { name, data, opts } of some) added.push(await this.#queues[queue].add(name, data, opts));
      heard?.();
    }
    for (const { name, id = '' } of added) this.#jobs.set(name, { queue, id });
    return shown(this.#handlersAddTo(queue) ? added.length : added.slice(0, 5).map(({ id }) => id));
  }

  async #schedule({ queue, id, repeat, job }: Extract<Step, { do: 'schedule' }>): Promise<string> {
    await this.#workers.know(scriptsOf([job]));
    this.#scheduled.set(job.key, isClose(repeat));
    const template = { name: job.key, data: this.#data(job, queue), opts: this.#opts(job) };
    return iterationText(await this.#queues[queue].upsertJobScheduler(id, decode(repeat) as RepeatOptions, template));
  }

  /** A job with copies as so many jobs. */
  #expand(plan: JobPlan, queue: number): JobPlan[] {
    const names =
      plan.copies === undefined ? [plan.key] : Array.from({ length: plan.copies }, (_, i) => `${plan.key}#${i}`);
    return names.map((key) => {
      const children = plan.children?.flatMap((child) => this.#expand(child, child.queue ?? queue));
      return { ...plan, key, ...(children && { children }) };
    });
  }

  #data(plan: JobPlan, queue: number): object {
    const sandboxed = this.program.workers.some(
      (worker) => worker.queue === queue && (worker.kind === 'process' || worker.kind === 'thread'),
    );
    return sandboxed ? { key: plan.key, script: plan.script ?? [] } : { key: plan.key };
  }

  #opts({ opts = {} }: JobPlan): object {
    const { group, ...others } = decode(opts) as { group?: { priority?: number } };
    if (!group) return others;
    if (this.place.hasGroups) return { ...others, group };
    return { ...others, ...(group.priority && { priority: group.priority }) };
  }

  #groupOf(name: string): string | undefined {
    return (planOf(name, this.program)?.opts?.group as { id: string } | undefined)?.id;
  }

  #tree(plan: JobPlan, queue: number): FlowJob {
    const at = plan.queue ?? queue;
    const children = plan.children?.map((child) => this.#tree(child, at));
    const { place } = this;
    return {
      name: plan.key,
      queueName: `q${at}`,
      prefix: place.prefix,
      data: this.#data(plan, at),
      opts: this.#opts(plan),
      ...(children && { children }),
    };
  }

  #rememberTree({ job, children }: JobNode): void {
    this.#jobs.set(job.name, { queue: Number(job.queueName.slice(1)), id: job.id ?? '' });
    for (const child of children ?? []) this.#rememberTree(child);
  }

  async #addChild(queue: number, plan: JobPlan, parent: Job): Promise<void> {
    await this.#workers.know(new Map([[plan.key, this.#scripts.get(plan.key) ?? []]]));
    const child = await addChild(this.#queues[queue], plan, parent, this.#data(plan, queue));
    this.#jobs.set(plan.key, { queue, id: child.id ?? '' });
  }

  async #settle(): Promise<string> {
    const runs = this.#runs;
    const signals = this.#signals;
    const observer = this.#observer;
    const taken = this.#taken;
    return await settle({
      queues: this.#queues,
      hasWorker: (queue) => this.#workers.takesFrom(queue),
      patient: this.program.workers.some(
        ({ kind, opts }) => kind === 'process' || kind === 'thread' || opts?.lockDuration,
      ),
      get running() {
        return runs.running;
      },
      get held() {
        return signals.held;
      },
      get taken() {
        return [...taken.values()].filter(({ moved }) => !moved).length;
      },
      get heard() {
        return observer.heard + runs.heard;
      },
    });
  }

  async #held({ signal, times }: Extract<Step, { do: 'held' }>): Promise<string> {
    const deadline = performance.now() + HELD_MS;
    while (this.#signals.waitingFor(signal) < times) {
      if (performance.now() > deadline) return `only ${this.#signals.waitingFor(signal)}`;
      await sleep(5); // handlers say so, of whichever process
    }
    return 'held';
  }

  async #cancel({ key, reason }: Extract<Step, { do: 'cancel' }>): Promise<string> {
    const { id, queue } = this.#jobs.get(key) ?? { id: key, queue: 0 };
    return await this.#workers.cancel(queue, id, reason);
  }

  async #callQueue({ queue, method, args }: Extract<Step, { do: 'queue' }>): Promise<string> {
    const target = this.#queues[queue] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const obliterates = method === 'obliterate';
    // what was told before is to be heard before it is gone
    if (obliterates) await this.#mark();
    const given = args.map(decode).map((arg) => (typeof arg === 'string' ? this.#idOf(arg) : arg));
    const answer = await target[method](...given);
    if (obliterates) {
      this.#signals.forgetHeld();
      await sleep(5); // in the same millisecond BullMQ's event log begins with numbers that its readers have passed
    }
    if (isOfTime(method)) return timeless(answer);
    if (!Array.isArray(answer)) return shown(answer);
    // ids of what was removed have no order; jobs have
    const jobs = answer.every((item) => typeof item === 'object');
    return shown(jobs ? (answer as Job[]).map(({ name }) => name) : answer.map(String).sort());
  }

  async #callGroup({ queue, method, args }: Extract<Step, { do: 'group' }>): Promise<void> {
    const target = this.#queues[queue];
    if (this.place.hasGroups) {
      await (target as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[method](...args);
    } else if (method === 'deleteGroup') {
      for (const job of await target.getJobs(['waiting', 'prioritized']))
        if (this.#groupOf(job.name) === args[0]) await job.remove().then(() => this.#deleted.add(job.name));
    }
  }

  /** A group is deleted as a queue is drained, of which no job tells. One with a priority in its group waits as any other. */
  #eventsInGroup(name: string, events: readonly string[]): string[] {
    const own = this.#deleted.has(name) ? events.slice(0, -1) : events;
    return own.map((event) => event.replace('"prioritized"', '"wait"'));
  }

  /** `job:key` stands for the id of that job. */
  #idOf(arg: string): string {
    return arg.startsWith('job:') ? (this.#jobs.get(arg.slice(4))?.id ?? 'no-such-job') : arg;
  }

  async #callJob({ key, method, args }: Extract<Step, { do: 'job' }>): Promise<string> {
    const known = this.#jobs.get(key);
    const job = known && (await this.#queues[known.queue].getJob(known.id));
    if (!job) return 'no such job';
    return shown(await call(job, method, args.map(decode)));
  }

  async #take({ worker, as }: Extract<Step, { do: 'take' }>): Promise<string> {
    const token = `token ${as}`;
    const job = await this.#workers.manual(worker)?.getNextJob(token, { block: false });
    if (!job) return 'none';
    this.#taken.set(as, { job, token, worker });
    return `${job.name} made ${job.attemptsMade} started ${job.attemptsStarted}`;
  }

  async #finish({ as, method, args, wrong }: Extract<Step, { do: 'finish' }>): Promise<string> {
    const taken = this.#taken.get(as);
    if (!taken) return 'none taken';
    const { job, token, worker } = taken;
    const answer = await call(job, method, args.map(decode), wrong ? 'a wrong token' : token);
    if (Array.isArray(answer) && /^moveTo(Completed|Failed)$/.test(method)) return this.#afterFetch(answer, as, worker);
    // it is not active any more; what is asked of it next is answered all the same
    taken.moved ||= method.startsWith('moveTo') && answer !== false;
    return shown(answer);
  }

  /** The next job comes with the end of the last. */
  #afterFetch([raw, id]: unknown[], as: string, worker: number): string {
    this.#taken.delete(as);
    const running = this.#workers.manual(worker) as unknown as {
      nextJobFromJobData(raw: unknown, id: unknown, token: string): Promise<Job | undefined>;
    };
    if (!raw) return `ended, next ${shown(id)}`;
    void running.nextJobFromJobData(raw, id, `token ${as}`).then((job) => {
      if (job) this.#taken.set(as, { job, token: `token ${as}`, worker });
    });
    return `ended, next ${shown(id)}`;
  }

  /** Everything that was told until now has been heard. */
  async #mark(): Promise<void> {
    const { lib } = this.place;
    await this.#workers.tellAll();
    const at = String(++this.#marks);
    for (const [index, queue] of this.#queues.entries()) {
      const producer = new lib.QueueEventsProducer(queue.name, this.#base);
      await producer.publishEvent({ eventName: 'mark', at }, 1_000_000);
      await producer.close();
      const deadline = performance.now() + MARK_MS;
      while (!this.#observer.hasMark(index, at) && performance.now() < deadline) await sleep(2); // comes by an event
    }
  }

  async end(): Promise<void> {
    this.#answers.end = await this.#settle();
    this.#signals.giveAll();
    this.#answers.atLast = await this.#settle();
    await this.#mark();
  }

  async observation(): Promise<Observation> {
    const jobs: Record<string, SeenJob> = {};
    for (const name of new Set([...this.#jobs.keys(), ...this.#observer.names])) jobs[name] = await this.#seen(name);
    const queues = await Promise.all(this.#queues.map((queue, index) => this.#observer.seenQueue(index, queue)));
    const workers = await this.#workers.seen();
    const neglects = await this.#watch?.neglects(this.#runs, this.#workers.lives);
    await sleep(5); // an unhandled rejection is told a turn later
    return this.#normalised({
      jobs,
      queues,
      steps: this.#answers,
      workers,
      unhandled: [...this.place.unhandled, ...this.#flowErrors.map((text) => `error event: ${text}`)],
      ...(neglects && { neglects }),
      ...(this.program.ordered && { order: this.#orderInGroups() }),
    });
  }

  #orderInGroups(): string[] {
    const groupOf = (name: string) => this.#groupOf(name) ?? '';
    return this.#runs.order.toSorted((one, other) => groupOf(one).localeCompare(groupOf(other)));
  }

  async #seen(name: string): Promise<SeenJob> {
    if (this.#scheduled.has(name)) return this.#seenOfScheduler(name);
    const { id = '', queue = -1 } = this.#jobs.get(name) ?? {};
    const job = await this.#queues[queue]?.getJob(id);
    const own = job?.name === name ? job : undefined;
    const logs = own && (await this.#queues[queue].getJobLogs(id));
    const fields = own ? { ...fieldsOf(own), logs: shown(logs) } : {};
    const heard = this.#observer.eventsOf(name);
    if (this.#groupOf(name) !== undefined) {
      Object.assign(fields, { opts: 'of a group', priority: 'of a group' });
      Object.assign(heard, { events: this.#eventsInGroup(name, heard.events) });
    }
    return {
      // where handlers add jobs it is a question of luck
      id: this.#handlersAddTo(queue) ? 'any' : id,
      state: own ? await own.getState() : 'gone',
      fields,
      runs: this.#runs.of(name),
      ...heard,
    };
  }

  /** All iterations have one name, and the next one is told of while the last one runs. */
  #seenOfScheduler(name: string): SeenJob {
    const { events, workerEvents } = this.#observer.eventsOf(name);
    const runs = this.#runs.of(name);
    return {
      ...{ id: 'any', state: 'any', fields: {}, runs, workerEvents },
      events: (this.#scheduled.get(name) ? withoutDelays(events) : events).toSorted(),
    };
  }

  #handlersAddTo(queue: number): boolean {
    const isSuch = (action: Action) => action.do === 'waitForChildren' && action.queue === queue;
    return [...this.#scripts.values()].some((script) => script.flat().some(isSuch));
  }

  get #addsByHandlers(): boolean {
    return this.#queues.some((_, queue) => this.#handlersAddTo(queue));
  }

  /** Prefixes and ids by chance are all that differs in what two libraries may say of a queue. */
  #normal(text: string): string {
    const own = text.replaceAll(this.place.prefix, '<prefix>').replace(UUID, '<uuid>');
    // where handlers add jobs the ids depend on who is the first
    const child = this.#addsByHandlers
      ? own.replace(/child (<prefix>:q\d+):\d+ failed/g, 'child $1:<id> failed').replace(/\b([Jj]ob) \d+/g, '$1 <id>')
      : own;
    // which line of which library fell over a job that its handler has spoilt is its own affair
    return child.replace(
      /Cannot (read|destructure|assign to read only|add) propert[^"\\\n]*/g,
      'a TypeError of JavaScript',
    );
  }

  /** Ids depend on which handler was the first to add a child. */
  #normalError(message: string): string {
    return this.#normal(message).replace(/\bjob \d+/g, 'job <id>');
  }

  #normalised(observation: Observation): Observation {
    return JSON.parse(this.#normal(JSON.stringify(observation))) as Observation;
  }

  async close(): Promise<void> {
    this.#clock.restore();
    this.#signals.giveAll();
    const all = [...this.#queues, ...this.#events, this.#flows].map((opened) => opened.close().catch(() => undefined));
    await Promise.race([Promise.all(all), sleep(CLOSE_MS)]); // whatever hangs is not waited for
    await Promise.all([this.#workers.leave(), this.#watch?.end()]);
  }
}

/** Scripts of jobs and of those below them, by their names. */
const scriptsOf = (plans: readonly JobPlan[]): Scripts =>
  new Map(plans.flatMap(({ key, script = [], children = [] }) => [[key, script], ...scriptsOf(children)]));
