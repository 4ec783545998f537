// A processor that is a file. Runs until its time is over: then it hears of that, as jobs called `hears` do, or goes on, or blocks its thread.
'use strict';

module.exports = async (job, token, signal) => {
  if (job.name === 'warm') return;
  await job.updateProgress(process.pid);
  if (job.name === 'blocks') for (;;);
  await new Promise((resolve) => {
    if (job.name === 'hears' && signal.aborted) resolve();
    else if (job.name === 'hears') signal.addEventListener('abort', resolve);
  });
  const { name, message, jobId } = signal.reason;
  await job.updateProgress({ name, message, jobId });
};
