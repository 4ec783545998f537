// What a first program does, with any library: adds, works, listens, and closes. Says how it went on its last line.
export async function quickStart({ Queue, QueueEvents, Worker }) {
  const connection = JSON.parse(process.env.CONNECTION);
  const name = process.env.QUEUE;
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  const worker = new Worker(
    name,
    async (job) => {
      if (job.name === 'fails') throw new Error('no');
      await job.updateProgress(50);
      return job.data.n * 2;
    },
    { connection },
  );
  const results = [];
  for (let n = 0; n < 5; n++) results.push(await (await queue.add('one', { n })).waitUntilFinished(events));
  const bulk = await queue.addBulk(Array.from({ length: 5 }, (_, n) => ({ name: 'bulk', data: { n } })));
  for (const job of bulk) results.push(await job.waitUntilFinished(events));
  const failing = await queue.add('fails', {}, { delay: 20 });
  const reason = await failing.waitUntilFinished(events).catch((error) => error.message);
  await worker.close();
  await events.close();
  await queue.close();
  console.log(JSON.stringify({ results, reason }));
}
