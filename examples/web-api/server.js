// A web API that leaves slow work to a queue, and bull-board at /board to look into it.
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Queue } from 'bullmq';
import express from 'express';
import { connection, worker } from './worker.js';

const mails = new Queue('mails', {
  connection,
  defaultJobOptions: { attempts: 3, backoff: { type: 'exponential', delay: 1000 }, removeOnComplete: 1000 },
});
const board = new ExpressAdapter().setBasePath('/board');
createBullBoard({ queues: [new BullMQAdapter(mails)], serverAdapter: board });

const app = express();
app.use(express.json());
app.use('/board', board.getRouter());

app.post('/mails', async (request, response) => {
  const { id } = await mails.add('welcome', { to: String(request.body.to) });
  response.status(202).location(`/mails/${id}`).json({ id });
});

app.get('/mails/:id', async (request, response) => {
  const { id } = request.params;
  // the state first: a job read after it has ended has its result
  const state = await mails.getJobState(id);
  const job = await mails.getJob(id);
  if (!job) return response.status(404).json({ error: 'no such mail' });
  response.json({ state, result: job.returnvalue, error: job.failedReason });
});

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening http://localhost:${server.address().port}`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, async () => {
    server.close();
    // waits for the mails that are being sent
    await worker.close();
    await mails.close();
    process.exit();
  });
}
