// What a handler does: all that its job's data asks of it, which a producer's plan (plans.mjs) has put there.
import { DelayedError, RateLimitError, UnrecoverableError, WaitingChildrenError, WaitingError } from 'chasquimq';
import { block } from '../../life/programs/loop.mjs';
import { messageOf, note } from './ledger.mjs';
import { fill } from './plans.mjs';

const MOVED = { wait: WaitingError, delayed: DelayedError, limit: RateLimitError, children: WaitingChildrenError };

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What it returns, and the message of what it throws, names the run by its mark, and ends with the key. */
export async function handle(job, token, run) {
  const { key, mark } = run;
  try {
    await work(job, run);
    const isMoved = await takeSteps(job, token, run);
    if (!isMoved) await checkChildren(job, key);
  } catch (error) {
    const isMove = Object.values(MOVED).some((kind) => error instanceof kind);
    if (isMove || error instanceof UnrecoverableError) throw error;
    throw new Error(`${messageOf(error)} ${mark} ${key}`, { cause: error });
  }
  const { result = 0 } = job.data;
  return `${mark} ${result} ${fill(mark, result)} ${key}`;
}

async function work(job, { key, mark }) {
  const { ms = 0, blocks = 0, fails = 0, hopeless = -1, says = 0, filler } = job.data;
  if (filler !== undefined && filler !== fill(key, filler.length)) note('wrong', `${key} its data is another's`);
  if (ms > 0) await pause(ms);
  if (blocks > 0) block(blocks);
  for (let i = 0; i < says; i++) {
    await job.log(`line ${i} of ${mark}`);
    await job.updateProgress({ mark, i });
  }
  if (job.attemptsMade < fails) throw new Error('fails');
  if (job.attemptsMade === hopeless) throw new UnrecoverableError(`hopeless ${mark} ${key}`);
}

/** Throws where a step moves the job; true: it was moved, and its handler goes on as if it had not been. */
async function takeSteps(job, token, run) {
  const { moves = [], byStarts } = job.data;
  for (let step = byStarts ? job.attemptsStarted - 1 : (job.data.step ?? 0); step < moves.length; step++) {
    const { to, lateMs = 0, isCareless, children } = moves[step];
    if (to === 'add') await addChildren(run, children);
    // its next run goes on behind this step, but who waits for children comes back to it
    if (!byStarts && to !== 'children') await job.updateData({ ...job.data, step: step + 1 });
    if (to === 'add' || !(await move(job, token, moves[step], run))) continue;
    note('moved', `${run.key} ${run.mark}`);
    // by now another run of it may be under way
    if (lateMs > 0) await pause(lateMs);
    if (isCareless) return true;
    throw new MOVED[to]();
  }
  return false;
}

/** Whether there was anything to move it for. */
async function move(job, token, { to, ms }, { key, mark, limit }) {
  // the next run begins with the same step, which is nobody's fault
  if (job.data.byStarts || to === 'children') note('parting', `${key} ${mark}`);
  if (to === 'wait') await job.moveToWait(token);
  else if (to === 'delayed') await job.moveToDelayed(Date.now() + ms, token);
  else if (to === 'limit') await limit(ms);
  else return job.moveToWaitingChildren(token);
  return true;
}

/** They have ids of their own: a run that begins with this step again adds none twice. */
async function addChildren({ job, queue }, children) {
  const parent = { id: job.id, queue: job.queueQualifiedName };
  const rows = children.map(({ name, data, opts }) => ({ name, data, opts: { ...opts, parent } }));
  note('sent', ...rows.map(({ name, data }) => `${data.key} ${name} kept -`));
  try {
    const added = await queue.addBulk(rows);
    note('acked', ...rows.map(({ data }, i) => `${data.key} ${added[i].id}`));
  } catch (error) {
    note('rejected', ...rows.map(({ data }) => `${data.key} ${messageOf(error)}`));
    throw error;
  }
}

async function checkChildren(job, key) {
  const { ignored } = job.data;
  if (ignored !== undefined) {
    const failures = Object.values(await job.getIgnoredChildrenFailures());
    if (failures.length !== ignored) note('wrong', `${key} ignores ${failures.length} children and not ${ignored}`);
  }
  const { children = [], moves = [] } = job.data;
  const keys = [...children, ...moves.flatMap((step) => step.children?.map(({ data }) => data.key) ?? [])];
  if (keys.length === 0) return;
  const values = Object.values(await job.getChildrenValues()).map((value) => String(value).split(' ').at(-1));
  if (String(values.sort()) !== String(keys.sort())) note('wrong', `${key} its children returned ${String(values)}`);
}
