// A processor of batches that is a file. What the first job's data say of `waits`: until the second one is cancelled.
'use strict';

module.exports = async (job) => {
  const jobs = job.getBatch();
  for (const each of jobs) await each.updateProgress(each.data.number);
  if (job.data.waits) {
    await new Promise((resolve) => jobs[1].signal.addEventListener('abort', resolve, { once: true }));
    jobs[1].setAsFailed(new Error(`${jobs[1].signal.reason}, and ${jobs[0].signal.aborted}`));
  } else if (jobs.length > 2) {
    jobs[1].setResult('of its own');
    jobs[2].setAsFailed(Object.assign(new Error('not this one'), { name: 'UnrecoverableError' }));
  }
  return jobs.map((each) => `${each.data.number} of ${jobs.length}, ${each.getBatch().length}`);
};
