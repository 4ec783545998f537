// A package that asks for `bullmq` of the project gets what the project has under that name.
const { createRequire } = require('node:module');
const { Queue } = require('bullmq');
const { createBullBoard } = require('@bull-board/api');
const { BullMQAdapter } = require('@bull-board/api/bullMQAdapter');

const ofBoard = createRequire(require.resolve('@bull-board/api'))('bullmq');
const queue = new Queue(process.env.QUEUE, { connection: JSON.parse(process.env.CONNECTION) });
const adapter = new BullMQAdapter(queue);
const calls = 'setQueues setViewsPath setStaticPath setUIConfig setEntryRoute setErrorHandler setApiRoutes'.split(' ');
const serverAdapter = Object.fromEntries(calls.map((name) => [name, () => serverAdapter]));
createBullBoard({ queues: [adapter], serverAdapter });
void adapter.getJobCounts().then(async (counts) => {
  console.log(JSON.stringify({ same: ofBoard.Queue === Queue, completed: counts.completed }));
  await queue.close();
});
