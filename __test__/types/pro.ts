/** Programs as users of BullMQ's paid edition write them: their names are those of our classes, type parameters included. Compiled, never run. */
import * as plain from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';
import type { JobPro, QueueEventsListenerPro, SandboxedJobPro } from '../../src/v5/index.js';

interface Mail {
  to: string;
}
type Name = 'welcome' | 'reminder';

const connection = { host: 'localhost' };

export const queue: v5.QueuePro<Mail, number, Name> = new v5.QueuePro<Mail, number, Name>('mail', { connection });
/** The job of a processor is one of these types, also where nothing is said of it. */
export const worker = new v5.WorkerPro<Mail, number, Name>(
  'mail',
  async (job) => {
    const same: JobPro<Mail, number, Name> = job;
    // @ts-expect-error -- there is no such field in the data
    console.log(job.data.from);
    const batch: JobPro<Mail, number, Name>[] = job.getBatch();
    for (const each of batch) if (each.data.to === '') each.setAsFailed(new Error('nobody'));
    return same.gid?.length ?? 0;
  },
  {
    connection,
    batch: { size: 10, minSize: 2, timeout: 100 },
    group: { concurrency: 1, limit: { max: 1, duration: 1000 } },
  },
);

export class OwnQueue<T> extends v5.QueuePro<T, void, string, T, void, string> {
  async sendTo(group: string, data: T): Promise<JobPro<T, void>> {
    return this.add('mail', data, { group: { id: group, priority: 3, maxSize: 100 } });
  }
}

export async function groups(): Promise<unknown[]> {
  const statuses: plain.GroupStatus[] = (await queue.getGroups(0, 9)).map(({ status }) => status);
  const [job]: JobPro<Mail, number, Name>[] = await queue.getGroupJobs('ana', 0, 0);
  const name: Name = job.name;
  // @ts-expect-error -- a name that this queue does not have
  await queue.add('other', { to: 'ana' });
  return [statuses, name, await queue.getGroupRateLimitTtl('ana', 10)];
}

export const events = new v5.QueueEventsPro('mail', { connection });
events.on('group-paused', ({ groupId }, id) => console.log(groupId.length, id.length));
// @ts-expect-error -- these are events of groups, and of no job
events.on('group-resumed', ({ jobId }) => console.log(jobId));
export const listeners: QueueEventsListenerPro['debounced'] = ({ debounceId }) => console.log(debounceId);
export const listener: plain.QueueEventsListenerPro<number>['completed'] = ({ returnvalue }) => returnvalue.toFixed();

export const flows: v5.FlowProducer = new v5.FlowProducerPro({ connection });
export const scheduler: v5.JobScheduler = new v5.JobSchedulerPro('mail', { connection });
export const processor = async (job: SandboxedJobPro<Mail, number>): Promise<number> =>
  job.gid?.length ?? job.data.to.length;
export const six: plain.Queue<Mail> = new plain.QueuePro<Mail>('mail', { connection });
