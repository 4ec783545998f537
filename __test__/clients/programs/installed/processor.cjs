const { isMainThread } = require('node:worker_threads');

module.exports = async (job) => {
  await job.updateProgress(50);
  return [job.data, isMainThread, typeof process.send];
};
