// Rows for PostgreSQL: one INSERT for each job, and then one for up to 500 jobs of a batch. Tells how long each takes, and ends.
import { Queue, Worker } from 'chasquimq';
import pg from 'pg';

const connection = { url: process.env.REDIS_URL ?? 'redis://localhost:6379' };
const database = process.env.DATABASE_URL ?? 'postgres://postgres@localhost:5432/postgres';
// both are emptied at first: none of yours are called so
const QUEUE = 'chasquimq-example-readings';
const TABLE = 'chasquimq_example_readings';
const ROWS = 20_000;
/** Of the database, and calls of the processor at once. */
const CONNECTIONS = 4;

// a job may run twice, as its worker may be gone before it has told of the end: its row is there once
const INSERT = `INSERT INTO ${TABLE} (id, sensor, degrees)
  SELECT * FROM unnest($1::text[], $2::text[], $3::float8[]) ON CONFLICT (id) DO NOTHING`;

const pool = new pg.Pool({ connectionString: database, max: CONNECTIONS });
const queue = new Queue(QUEUE, { connection });

async function insert(jobs) {
  const columns = [({ id }) => id, ({ data }) => data.sensor, ({ data }) => data.degrees];
  await pool.query(
    INSERT,
    columns.map((column) => jobs.map(column)),
  );
}

/** One INSERT. A row that the database refuses makes all of it fail: then each goes by itself, and only that one fails. */
async function insertBatch(first) {
  const jobs = first.getBatch();
  try {
    await insert(jobs);
  } catch {
    for (const job of jobs) await insert([job]).catch((error) => job.setAsFailed(error));
  }
}

/** Runs a worker until all rows are there. */
async function measure(what, processor, batch) {
  await queue.obliterate({ force: true });
  await pool.query(`DROP TABLE IF EXISTS ${TABLE}`);
  await pool.query(`CREATE TABLE ${TABLE} (id text PRIMARY KEY, sensor text, degrees float8)`);
  const readings = Array.from({ length: ROWS }, (_, i) => ({ sensor: `s${i % 100}`, degrees: i / 100 }));
  // one that no column takes
  readings[ROWS / 2].degrees = 'warm';
  await queue.addBulk(readings.map((data) => ({ name: 'reading', data, opts: { removeOnComplete: true } })));

  const since = performance.now();
  const worker = new Worker(QUEUE, processor, { connection, concurrency: CONNECTIONS, batch });
  worker.on('error', (error) => console.error(error.message));
  await worker.drain();
  const seconds = (performance.now() - since) / 1000;
  await worker.close();

  const { rows } = await pool.query(`SELECT count(*)::int AS count FROM ${TABLE}`);
  const failed = await queue.getFailedCount();
  console.log(`${what}: ${rows[0].count} rows, ${failed} failed, ${Math.round(rows[0].count / seconds)} rows a second`);
}

await measure('one job a call', (job) => insert([job]));
await measure('up to 500 jobs a call', insertBatch, { size: 500 });
await Promise.all([queue.close(), pool.end()]);
