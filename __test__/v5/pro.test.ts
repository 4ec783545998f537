// A program written for BullMQ's paid edition, which stands on BullMQ 5: its names are those of the classes that there are.
import * as bullmq from 'bullmq';
import { afterEach, describe, expect, it } from 'vitest';
import * as plain from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';
import {
  FlowProducerPro,
  GroupMaxSizeExceededError,
  JobPro,
  QueueEventsPro,
  QueuePro,
  WorkerPro,
} from '../../src/v5/index.js';
import type { QueueEventsListenerPro } from '../../src/v5/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { textOf } from '../support/doc-blocks.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const NAMES = ['FlowProducer', 'Job', 'JobScheduler', 'Queue', 'QueueEvents', 'Worker'] as const;

it.each([
  ['chasquimq', plain],
  ['chasquimq/v5', v5],
])('%s has each class under the name of the paid edition, too', (_, entry) => {
  for (const name of NAMES) expect(entry[`${name}Pro`]).toBe(entry[name]);
  expect(entry.GroupMaxSizeExceededError).toBe(plain.GroupMaxSizeExceededError);
});

it('docs/parity.md names each export that BullMQ does not have', () => {
  const [, added = ''] = textOf('docs/parity.md').split('## Names that BullMQ 6.7.0 does not have');
  const named = [...added.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const ours = Object.keys(plain).filter((name) => !(name in bullmq));
  expect(ours).toContain('QueuePro');
  expect(ours.filter((name) => !named.includes(name))).toEqual([]);
});

interface Mail {
  to: string;
}

class Mails extends QueuePro<Mail, string> {
  send(to: string): Promise<JobPro<Mail, string>> {
    return this.add('mail', { to }, { group: { id: to, maxSize: 2 } });
  }
}

describe('a program for the paid edition', () => {
  const stage = useStage(chasquimq);
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  });

  function keep<T extends { close(): Promise<void> }>(each: T): T {
    opened.push(each);
    return each;
  }
  const options = () => ({ connection: { ...connection } });

  it('adds to groups, pauses one, and runs batches', async () => {
    const queue = keep(new Mails(stage.name(), options()));
    const events = keep(new QueueEventsPro(stage.name(), { ...options(), lastEventId: '0-0' }));
    const heard: string[] = [];
    const onPaused: QueueEventsListenerPro['group-paused'] = ({ groupId }) => void heard.push(groupId);
    events.on('group-paused', onPaused);
    await queue.pauseGroup('ben');
    for (const to of ['ana', 'ana', 'ben']) expect((await queue.send(to)).gid).toBe(to);
    expect(await rejection(queue.send('ana'))).toBeInstanceOf(GroupMaxSizeExceededError);

    const process = async (job: JobPro<Mail, string>): Promise<string> =>
      job
        .getBatch()
        .map(({ data, gid }) => `${data.to} ${gid}`)
        .join();
    const batch = { batch: { size: 2 }, group: { concurrency: 2 } };
    const worker = keep(new WorkerPro<Mail, string>(stage.name(), process, { ...options(), ...batch }));
    expect(worker).toBeInstanceOf(v5.Worker);
    const log = new EventLog(worker, ['completed']);
    await log.get('completed', 2);
    const jobs = log.entries.map(({ args }) => args[0] as JobPro<Mail, string>);
    expect(jobs.map((job) => [job instanceof JobPro, job.returnvalue])).toEqual(
      jobs.map(() => [true, 'ana ana,ana ana']),
    );
    expect(await queue.getGroups()).toEqual([{ id: 'ben', status: 'paused' }]);
    await until('the event of the pause', () => heard.length > 0);
    expect(heard).toEqual(['ben']);
  });

  it('makes flows with parents in groups', async () => {
    const flows = keep(new FlowProducerPro(options()));
    const group = { id: 'a' };
    const queueName = stage.name();
    const { job } = await flows.add({
      name: 'p',
      queueName,
      opts: { group },
      children: [{ name: 'c', queueName, opts: { group } }],
    });
    expect([job instanceof JobPro, job.gid]).toEqual([true, 'a']);
  });
});
