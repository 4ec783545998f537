// Half of a pair of surrogates has no form in UTF-8: it is replaced once, and what was added is found by the same text.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const WAIT_MS = 100_000;

describe('half pairs', () => {
  const stage = useStage(chasquimq);

  // half-surrogates: a wanted difference (docs/differences.md)
  it.each(['a\ud800', '\udc00b', '\udc00\ud800'])('%j', async (text) => {
    const carried = Buffer.from(text).toString();
    const queue = stage.queue();
    const opts = { jobId: text, deduplication: { id: text }, mine: { [text]: text } };
    const added = await queue.add(text, { text }, opts);
    expect([added.id, added.name]).toEqual([carried, text]);
    expect((await queue.add(text, {}, { deduplication: { id: text } })).id).toBe(carried);
    expect(await queue.getDeduplicationJobId(text)).toBe(carried);
    const found = await fetchJob(queue, text);
    expect([found.name, found.data, found.deduplicationId]).toEqual([carried, { text }, carried]);
    expect((found.opts as typeof opts).mine).toEqual({ [text]: text });
    const log = new EventLog(
      stage.worker(async (job) => job.name),
      ['completed'],
    );
    const [job, result] = await log.get<[Job, string]>('completed', 1, WAIT_MS);
    expect([job.id, result]).toEqual([carried, carried]);
    expect(await found.getState()).toBe('completed');
    expect(await queue.remove(text)).toBe(1);
  });
});
