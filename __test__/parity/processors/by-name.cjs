// Does what the name of its job says.
const { readdirSync, writeFileSync } = require('node:fs');

const kinds = {
  double: (job) => job.data.n * 2,
  async later(job) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    return job.data;
  },
  nothing: () => undefined,
  fields: (job) => JSON.parse(JSON.stringify(job)),
  token: (job, token, signal) => [token.split(':').length, typeof signal, signal.aborted],
  pid: () => process.pid,
  thread: () => require('node:worker_threads').isMainThread,
  env: () => process.env.OF_THE_WORKER,
  async throws() {
    throw Object.assign(new TypeError('boom'), { detail: { code: 7 }, extra: 'x' });
  },
  throwsAtOnce() {
    throw new Error('at once');
  },
  throwsText() {
    throw 'text';
  },
  throwsCircle() {
    const error = new Error('circle');
    error.self = error;
    error.inner = { error };
    throw error;
  },
  unrecoverable() {
    throw Object.assign(new Error('never again'), { name: 'UnrecoverableError' });
  },
  async progress(job) {
    await job.updateProgress(10);
    await job.updateProgress({ at: 'half' });
    return job.progress;
  },
  async log(job) {
    await job.log('one');
    await job.log('two');
  },
  async data(job) {
    await job.updateData({ now: 'this' });
    return job.data;
  },
  async steps(job, token) {
    for (let row = 0; row < 20; row++) await job.log(`row ${row}`);
    await job.updateData({ step: 2 });
    return job.moveToWaitingChildren(token);
  },
  async delays(job, token) {
    await job.moveToDelayed(Date.now() + 60000, token);
    throw Object.assign(new Error('moved'), { name: 'DelayedError' });
  },
  async waits(job, token) {
    if (job.attemptsStarted > 1) return 'again';
    await job.moveToWait(token);
    throw Object.assign(new Error('moved'), { name: 'WaitingError' });
  },
  // a wrapper's argument that is left open
  async leavesOpen(job, token, left) {
    const open = [left].find(() => false);
    const answers = [await job.moveToWaitingChildren(token, open), await job.getDependenciesCount(open)];
    await job.updateData(open);
    return answers;
  },
  async badToken(job) {
    await job.moveToDelayed(Date.now() + 60000, 'theirs');
    throw Object.assign(new Error('moved'), { name: 'DelayedError' });
  },
  async asks(job, token) {
    const ask = (method) => (method === 'moveToWaitingChildren' ? job[method](token) : job[method]());
    const answers = await Promise.allSettled(job.data.map(ask));
    return answers.map(({ value, reason }) => (reason ? [reason.name, reason.message] : value));
  },
  asksOne: (job) => job[job.data](),
  async asksAndComputes(job) {
    const asked = job.getChildrenValues();
    const end = Date.now() + job.data;
    while (Date.now() < end);
    return asked;
  },
  exits: (job) => process.exit(job.data.code),
  async uncaught() {
    setTimeout(() => {
      throw new Error('out of reach');
    });
    await new Promise(() => {});
  },
  async aborts(job, token, signal) {
    await job.updateProgress('started');
    await new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error(`aborted: ${signal.reason}`)));
    });
  },
  untilAborted: (job, token, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error(`aborted: ${JSON.stringify(signal.reason)}`)));
    }),
  circle() {
    const circle = {};
    circle.self = circle;
    return circle;
  },
  async slow(job) {
    await job.updateProgress('started');
    await new Promise((resolve) => setTimeout(resolve, 300));
    return 'slow';
  },
  async meets(job) {
    const { dir, count } = job.data;
    writeFileSync(`${dir}/${job.id}`, '');
    while (readdirSync(dir).length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    return process.pid;
  },
  async hangs(job) {
    await job.updateProgress('started');
    await new Promise((resolve) => setTimeout(resolve, 60000));
  },
};

module.exports = (job, token, signal) => kinds[job.name](job, token, signal);
