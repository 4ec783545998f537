// Stands in for `next start`: calls the handlers of app/api/reports/route.js. And starts the worker beside it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import * as route from './app/api/reports/route.js';
import { reports } from './lib/queue.js';

const worker = fork(new URL('worker.js', import.meta.url));

const server = createServer(async (incoming, outgoing) => {
  const { method, url, headers } = incoming;
  const body = method === 'GET' ? undefined : Buffer.concat(await incoming.toArray());
  const handler = url.startsWith('/api/reports') ? route[method] : undefined;
  const answer = (await handler?.(new Request(`http://${headers.host}${url}`, { method, body }))) ?? Response.error();
  outgoing.writeHead(answer.status || 404, Object.fromEntries(answer.headers)).end(await answer.text());
});
server.listen(Number(process.env.PORT ?? 3000), () =>
  console.log(`listening http://localhost:${server.address().port}`),
);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, async () => {
    server.close();
    worker.kill('SIGTERM');
    if (worker.exitCode === null) await once(worker, 'exit');
    await reports().close();
    process.exit();
  });
}
