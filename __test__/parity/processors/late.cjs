// What a job calls after its end: `leaves` lets the next job of its child make its calls, `later` waits for nobody.
let left;

const kinds = {
  leaves(job) {
    left = job;
  },
  async makes() {
    await left.log('late');
    await left.updateProgress('late');
    await left.updateData({ of: 'late' });
    return left.getChildrenValues();
  },
  later(job) {
    setTimeout(() => job.updateProgress('late'), 50);
  },
  // of a job that is not active any more
  async moves() {
    await left.moveToDelayed(Date.now() + 60_000);
    // its answer comes behind that of the move
    await left.getChildrenValues();
  },
};

module.exports = (job) => kinds[job.name](job);
