// A route handler as Next.js calls it: it adds a job and answers at once; another asks how far it is.
import { reports } from '../../../lib/queue.js';

export async function POST(request) {
  const { month } = await request.json();
  // one report a month, however often somebody clicks
  const { id } = await reports().add('monthly', { month }, { jobId: `monthly-${month}` });
  return Response.json({ id }, { status: 202 });
}

export async function GET(request) {
  const id = new URL(request.url).searchParams.get('id') ?? '';
  // the state first: a job read after it has ended has its result
  const state = await reports().getJobState(id);
  const job = await reports().getJob(id);
  if (!job) return Response.json({ error: 'no such report' }, { status: 404 });
  return Response.json({ state, progress: job.progress, result: job.returnvalue });
}
