// A processor that is a file. Tells its process by its progress; then it hangs, whatever its signal says, or throws when it is cancelled.
'use strict';

module.exports = async (job, token, signal) => {
  if (job.attemptsStarted > 1) return 'again';
  await job.updateProgress(process.pid);
  await new Promise((resolve, reject) => {
    if (job.name === 'throws') signal.addEventListener('abort', () => reject(new Error(`cut off: ${signal.reason}`)));
  });
};
