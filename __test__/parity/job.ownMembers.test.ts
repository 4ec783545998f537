// Pins what whoever goes by own properties sees of a job that was asked for: Object.assign, a rest, templates that read no
// others (BullMQ 6.7 Job's constructor assigns all members).
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: job.ownMembers', ({ lib }) => {
  const stage = useStage(lib);

  /** The same job by every way that leads to it. */
  async function found(done = false): Promise<[string, Job | undefined][]> {
    const queue = stage.queue();
    const added = await queue.add('paint', { colour: 'red' }, { attempts: 2 });
    if (done) {
      const worker = stage.worker(async () => ({ painted: true }));
      await new EventLog(worker, ['completed']).get('completed');
      await worker.close();
    }
    const id = added.id as string;
    const ways: [string, Job | undefined][] = [
      ['getJob', await queue.getJob(id)],
      ['getJobs', (await queue.getJobs([done ? 'completed' : 'waiting']))[0]],
      ['fromId', await lib.Job.fromId(queue, id)],
      ['getFlow', (await stage.flowProducer().getFlow({ id, queueName: stage.queueName })).job],
      ['fromJSON', lib.Job.fromJSON(queue, (await fetchJob(queue, id)).asJSON())],
    ];
    if (!done) ways.push(['getNextJob', await stage.worker(null).getNextJob('token')]);
    return ways;
  }

  it.each([
    ['waiting', false, null, []],
    ['completed', true, { painted: true }, []],
  ])('a %s job bears its members', async (_, done, returnvalue, stacktrace) => {
    for (const [way, job] of await found(done)) {
      const shown = { ...job } as Partial<Job>;
      expect(shown, way).toMatchObject({
        ...{ name: 'paint', data: { colour: 'red' }, opts: { attempts: 2 }, progress: 0 },
        ...{ returnvalue, stacktrace, queueQualifiedName: `bull:${stage.queueName}` },
      });
      const keys = Object.keys(job as object);
      for (const key of ['data', 'opts', 'returnvalue', 'stacktrace', 'delay', 'timestamp', 'attemptsMade']) {
        expect(keys, way).toContain(key);
        expect(Object.hasOwn(job as object, key), way).toBe(true);
      }
      const { data, ...rest } = job as Job;
      expect([data, rest.opts], way).toEqual([job?.data, job?.opts]);
    }
  });

  it('what is assigned is what is seen', async () => {
    const queue = stage.queue();
    await queue.add('paint', { colour: 'red' });
    const job = await fetchJob(queue, '1');
    job.data = { colour: 'blue' };
    job.returnvalue = 7;
    expect(Object.assign({}, job)).toMatchObject({ data: { colour: 'blue' }, returnvalue: 7 });
    await job.updateData({ colour: 'green' });
    expect({ ...job }.data as unknown).toEqual({ colour: 'green' });
  });

  it('what a processor keeps on its job meets nothing of the library', async () => {
    const names = [
      ...['call', 'knownId', 'decoded', 'noteGiven', 'holdTexts', 'adoptExtra', 'adoptOptions', 'shareOptions'],
      ...[
        'changedOpts',
        'optionsText',
        'recordResult',
        'recordCompletion',
        'recordTrace',
        'recordFailure',
        'asStored',
        'signal',
      ],
    ];
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      Object.assign(job, Object.fromEntries(names.map((name) => [name, name])));
      await job.updateProgress(50);
      if (job.attemptsMade === 0) throw new Error('once');
      return names.map((name) => (job as unknown as Record<string, unknown>)[name]);
    });
    const completed = new EventLog(worker, ['completed']);
    await queue.add('paint', {}, { attempts: 2 });
    await completed.get('completed');
    expect(await fetchJob(queue, '1')).toMatchObject({ returnvalue: names, progress: 50, attemptsMade: 2 });
  });
});
