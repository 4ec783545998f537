// Before any test: there has to be a Redis. Without one the run fails; a suite that is skipped looks like one that
// passes.
import { connect } from 'node:net';

export default async function requireRedis() {
  if (!process.env.REDIS_URL) {
    throw new Error('REDIS_URL is not set. Use `npm test -- js`, or `node .ci/redis.mjs npx vitest run <file>`.');
  }
  const { hostname, port } = new URL(process.env.REDIS_URL);
  await new Promise((resolve, reject) => {
    const socket = connect(Number(port || 6379), hostname, () => resolve(socket.destroy()));
    socket.once('error', (cause) => reject(new Error('The server in REDIS_URL does not answer', { cause })));
  });
}
