// Throws or gives what the name of its job says, which is hard to send to another process.
const kinds = {
  bigint() {
    throw Object.assign(new Error('boom'), { size: 10n, code: 'E' });
  },
  cause() {
    throw new Error('boom', { cause: Object.assign(new Error('why'), { code: 'C' }) });
  },
  function: () => () => 'late',
  symbol: () => Symbol('s'),
};

module.exports = async (job) => kinds[job.name]();
