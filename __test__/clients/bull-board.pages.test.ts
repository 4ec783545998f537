// bull-board in a browser: every page, and what its buttons do, show the same over our queues as over BullMQ's.
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import type { Queue } from '../../src/index.js';
import { Browser } from './browser.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const AS_BULLMQ = fileURLToPath(new URL('programs/as-bullmq.mjs', import.meta.url));
const LONG_MS = 300_000;
const STATES = ['latest', 'active', 'waiting', 'waiting-children', 'prioritized', 'completed', 'failed', 'delayed'];

const stage = useStage(chasquimq);

interface Step {
  name: string;
  /** The page to look at: reached by a link, or loaded anew once `act` is done. */
  path?: string;
  act?: (board: Board) => Promise<void>;
}

const open = (path: string): Step => ({ name: path, path });

const steps: Step[] = [
  open('/'),
  ...STATES.map((state) => open(`/queue/QUEUE?status=${state}`)),
  open('/job-schedulers'),
  ...['good', 'bad', 'late', 'urgent', 'open', 'ended'].map((id) => open(`/queue/QUEUE/${id}`)),
  { name: 'options of a job', act: ({ tab }) => tab('Options') },
  { name: 'logs of a job', act: ({ tab }) => tab('Logs') },
  open('/queue/QUEUE-child/open-x'),
  { name: 'retry a job', act: ({ press }) => press('bad', 0, 'Retry'), path: '/queue/QUEUE/bad' },
  { name: 'promote a job', act: ({ press }) => press('late', 0, 'Promote'), path: '/queue/QUEUE/late' },
  {
    name: 'remove children',
    act: ({ press }) => press('open', 0, 'Remove unprocessed children'),
    path: '/queue/QUEUE/open',
  },
  { name: 'remove a job', act: ({ press }) => press('waits', 2, 'Clean'), path: '/queue/QUEUE?status=waiting' },
  { name: 'add a job', act: ({ addJob }) => addJob('mine'), path: '/queue/QUEUE?status=waiting' },
  { name: 'pause', act: ({ menu }) => menu('Pause'), path: '/' },
  { name: 'resume', act: ({ menu }) => menu('Resume'), path: '/' },
  { name: 'retry all', act: ({ retryAll }) => retryAll('completed'), path: '/queue/QUEUE' },
  { name: 'run a scheduler', act: ({ scheduler }) => scheduler('Run now'), path: '/queue/QUEUE' },
  { name: 'remove a scheduler', act: ({ scheduler }) => scheduler('Remove scheduler'), path: '/job-schedulers' },
  { name: 'empty', act: ({ menu }) => menu('Empty'), path: '/queue/QUEUE' },
  { name: 'pause again', act: ({ menu }) => menu('Pause'), path: '/queue/QUEUE?status=paused' },
  { name: 'obliterate', act: ({ menu }) => menu('Obliterate'), path: '/' },
];

/** What a person does on the board over queues of one library. */
class Board {
  readonly browser: Browser;
  readonly #base: string;
  readonly #queue: string;

  constructor(browser: Browser, base: string, queue: string) {
    this.browser = browser;
    this.#base = base;
    this.#queue = queue;
  }

  /** Does the step, and is then on the page to look at. */
  async go({ path, act }: Step): Promise<void> {
    await act?.(this);
    if (path && act) await this.browser.page.goto(this.#base + this.#named(path));
    else if (path) await this.#open(path);
  }

  readonly tab = (name: string): Promise<void> => this.browser.page.getByRole('tab', { name, exact: true }).click();

  /** Presses the `nth` of a job's buttons, which has no text but that which comes up when one points at it. */
  readonly press = async (id: string, nth: number, name: string): Promise<void> => {
    await this.#open(`/queue/QUEUE/${id}`);
    await this.#pointed(nth, name);
    await this.#confirmed(() => this.browser.page.locator('main ul li button').nth(nth).click());
  };

  readonly addJob = async (name: string): Promise<void> => {
    await this.#fromMenu('Add job');
    await this.browser.page.getByLabel('Job name').fill(name);
    await Promise.all([this.browser.sent(), this.#button('Add').click()]);
  };

  readonly menu = (name: string): Promise<void> => this.#confirmed(() => this.#fromMenu(name));

  readonly retryAll = async (state: string): Promise<void> => {
    await this.#open(`/queue/QUEUE?status=${state}`);
    await this.#confirmed(() => this.#button('Retry all').click());
  };

  readonly scheduler = async (name: string): Promise<void> => {
    await this.#open('/job-schedulers');
    await this.#confirmed(() => this.#button(name).first().click());
  };

  /** What is seen, without what differs from run to run. */
  seen(lines: string[]): string[] {
    return lines
      .map((line) => line.replaceAll(this.#queue, 'QUEUE').replaceAll(/(open|ended)-[xy]/g, '$1-CHILD'))
      .map((line) => line.replaceAll(/.*\d:\d\d:\d\d.*/g, 'TIME').replaceAll(/\d{13}/g, 'TIME'))
      .filter((line) => !/^\s+at |^-?\d+ (milli)?seconds?$| ago$/.test(line));
  }

  readonly #named = (path: string): string => path.replace('QUEUE', this.#queue);

  #open(path: string): Promise<void> {
    return this.browser.go(this.#base, this.#named(path));
  }

  #button(name: string) {
    return this.browser.page.getByRole('button', { name, exact: true });
  }

  async #pointed(nth: number, name: string): Promise<void> {
    const { page } = this.browser;
    await page.locator('main ul li button').nth(nth).hover();
    await page.locator('[data-base-ui-portal]').getByText(name, { exact: true }).waitFor();
  }

  async #fromMenu(name: string): Promise<void> {
    await this.#open('/queue/QUEUE');
    await this.browser.page.locator('main button[aria-haspopup=menu]').last().click();
    await this.browser.page.getByRole('menuitem', { name, exact: true }).click();
  }

  /** Some of what changes queues is asked about first. */
  async #confirmed(act: () => Promise<void>): Promise<void> {
    const confirm = this.#button('Confirm');
    const asked = confirm.waitFor().then(() => confirm.click());
    // not asked: what counts is that the request is sent
    asked.catch(() => {});
    await Promise.all([this.browser.sent(), act()]);
  }
}

async function openBoard(browser: Browser, library: string, other?: string): Promise<Board> {
  const env = { LIBRARY: library, QUEUE: stage.name(library), ...(other && { OTHER: other }) };
  const nodeOptions = ['--import', AS_BULLMQ];
  const server = stage.keep(Program.start('../../clients/programs/board-server.mjs', { env, nodeOptions }));
  return new Board(browser, await server.said('listening'), other ?? stage.name(library));
}

/** Does every step; `look` is told of each, once it is done. A picture of the page is kept when one fails. */
async function go(board: Board, look: (index: number) => Promise<void>): Promise<void> {
  for (const [index, step] of steps.entries()) {
    try {
      await board.go(step);
      await look(index);
    } catch (error) {
      throw new Error(`${step.name}: the page is kept in ${await board.browser.picture('bull-board')}`, {
        cause: error,
      });
    }
  }
}

it('bull-board shows the same over either library, page by page', { timeout: LONG_MS }, async () => {
  const browser = stage.keep(await Browser.open());
  const control = await openBoard(browser, 'bullmq');
  const expected: string[][] = [];
  await go(control, async () => void expected.push(control.seen(await browser.lines())));
  const ours = await openBoard(browser, 'chasquimq');
  await go(ours, async (index) => {
    const seen = async () => ours.seen(await browser.linesNow());
    await vi.waitFor(async () => expect(await seen()).toEqual(expected[index]), { timeout: 60_000 });
  });
  expect(browser.errors).toEqual([]);
});

it('bull-board shows jobs of groups once each, whatever keeps their groups', { timeout: LONG_MS }, async () => {
  const queue = stage.queue({}, 'groups') as unknown as Queue;
  const gate = stage.gate();
  const worker = stage.worker(
    async ({ name }) => {
      if (name === 'bad') throw new Error('no good');
      if (name === 'held') await gate.opened;
    },
    { concurrency: 1 },
    'groups',
  );
  const log = new EventLog(worker, ['active', 'completed', 'failed']);
  const add = (name: string, id: string, delay = 0): Promise<unknown> =>
    queue.add(name, {}, { jobId: `${name}-of-${id}`, group: { id }, delay });
  await Promise.all([queue.pauseGroup('paused'), queue.rateLimitGroup('limited', 3_600_000)]);
  await add('done', 'free');
  await log.get('completed');
  await add('bad', 'free');
  await log.get('failed');
  await add('held', 'free');
  await log.get('active', 3);
  for (const id of ['free', 'paused', 'limited']) for (const name of ['first', 'next']) await add(name, id);
  await add('late', 'paused', 3_600_000);

  const browser = stage.keep(await Browser.open());
  const board = await openBoard(browser, 'chasquimq', queue.name);
  /** The jobs of a page, each with its group behind it. */
  const shown = async (state: string, act?: Step['act']): Promise<string[]> => {
    await board.go({ name: state, path: `/queue/QUEUE?status=${state}`, ...(act && { act }) });
    return (await browser.lines()).filter((line) => line.includes('-of-') || line.startsWith('group: '));
  };
  const jobs = (...ids: string[]): string[] => ids.flatMap((id) => [id, `group: ${id.split('-')[2]}`]);
  expect(await shown('active')).toEqual(jobs('held-of-free'));
  expect(await shown('completed')).toEqual(jobs('done-of-free'));
  expect(await shown('failed')).toEqual(jobs('bad-of-free'));
  expect(await shown('delayed')).toEqual(jobs('late-of-paused'));
  for (const state of ['waiting-children', 'prioritized']) expect(await shown(state)).toEqual([]);
  const waiting = ['free', 'paused', 'limited'].flatMap((id) => [`first-of-${id}`, `next-of-${id}`]);
  expect((await shown('waiting')).sort()).toEqual(jobs(...waiting).sort());
  const all = ['held-of-free', 'done-of-free', 'bad-of-free', 'late-of-paused', ...waiting];
  expect((await shown('latest')).sort()).toEqual(jobs(...all).sort());
  expect((await shown('waiting', ({ press }) => press('late-of-paused', 0, 'Promote'))).sort()).toEqual(
    jobs('late-of-paused', ...waiting).sort(),
  );
  expect(await shown('waiting', ({ press }) => press('first-of-limited', 2, 'Clean'))).not.toContain(
    'first-of-limited',
  );
  expect(await shown('waiting', ({ menu }) => menu('Empty'))).toEqual([]);
  expect(browser.errors).toEqual([]);
  gate.open();
});
