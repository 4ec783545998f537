// A processor that is a file, and gives an observable: of the values in the job's data; one called `endless` ends only when it is unsubscribed.
'use strict';

module.exports = (job) => ({
  '@@observable'() {
    return this;
  },
  subscribe(observer) {
    for (const value of job.data) observer.next(value);
    if (job.name !== 'endless') observer.complete();
    else void job.updateProgress('subscribed');
    return { unsubscribe: () => void job.updateProgress('unsubscribed') };
  },
});
