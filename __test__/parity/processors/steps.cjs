// A step job: it moves itself on its first start, and completes on its second.
module.exports = async (job, token) => {
  if (job.attemptsStarted > 1) return 'done';
  await job.moveToWait(token);
  const error = new Error('bullmq:movedToWait');
  error.name = 'WaitingError';
  throw error;
};
