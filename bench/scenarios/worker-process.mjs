// A worker that is a process of its own, for processes.ts: the address of its library, the queue and the connection are in the first argument.
// Runs when it is told to, and ends with its parent.
const { address, queueName, connection, concurrency } = JSON.parse(process.argv[2]);
const { Worker } = await import(address);
const worker = new Worker(queueName, async () => undefined, { connection, concurrency, autorun: false });
worker.on('error', (error) => process.send({ fault: error.message }));
await worker.waitUntilReady();
process.on('message', () => {
  worker.run().catch((error) => process.send({ fault: error.message }));
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
