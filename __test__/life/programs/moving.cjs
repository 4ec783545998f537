// A processor that is a file: gives its job back at its first start, in the way that the job's name says. Its data are the connection.
'use strict';

const chasquimq = require('chasquimq');

let queue;

const moves = {
  async delayed(job, token) {
    await job.moveToDelayed(Date.now() + 5, token);
    return new chasquimq.DelayedError();
  },
  async wait(job, token) {
    await job.moveToWait(token);
    return new chasquimq.WaitingError();
  },
  async children(job, token) {
    await queue.add('child', 0, { parent: { id: job.id, queue: job.queueQualifiedName } });
    if (await job.moveToWaitingChildren(token)) return new chasquimq.WaitingChildrenError();
    // another worker was faster
    await job.moveToWait(token);
    return new chasquimq.WaitingError();
  },
  async limit() {
    await queue.rateLimit(5);
    return new chasquimq.RateLimitError();
  },
  async group(job) {
    await queue.rateLimitGroup(job.gid, 5);
    return new chasquimq.RateLimitError();
  },
  failure: async () => new Error('once more'),
};

module.exports = async (job, token) => {
  const move = moves[job.name];
  if (!move || job.attemptsStarted > 1) return;
  queue ??= new chasquimq.Queue(job.queueName, { connection: job.data });
  throw await move(job, token);
};
