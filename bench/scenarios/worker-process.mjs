// A worker that is a process of its own, for `../worker-process.ts`: the address of its library, the queue and the connection are in the first argument.
// Runs when it is told to, tells what it has done when it is asked, and ends with its parent.
const { address, queueName, connection, concurrency, tells } = JSON.parse(process.argv[2]);
const { Worker } = await import(address);
const fault = (error) => process.send({ fault: error.message });

let [ran, sum] = [0, 0];
const handler = async ({ id }) => {
  ran += 1;
  sum += Number(id);
};
const worker = new Worker(queueName, handler, { connection, concurrency, autorun: false });
worker.on('error', fault);
worker.on('failed', (_, error) => fault(error));
// the clock of the machine, which its processes share
if (tells) worker.on('completed', () => process.send({ completedAt: Number(process.hrtime.bigint()) / 1e6 }));
await worker.waitUntilReady();
process.on('message', (message) => {
  if (message === 'run') return void worker.run().catch(fault);
  const { user, system } = process.cpuUsage();
  process.send({ account: { ran, sum, cpuMicros: user + system } });
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
