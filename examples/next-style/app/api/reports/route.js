// A route handler as Next.js calls it: it adds a job and answers at once; another asks how far it is.
import { reports } from '../../../lib/queue.js';

export async function POST(request) {
  const { month } = await request.json();
  // one report a month, however often somebody clicks
  const { id } = await reports().add('monthly', { month }, { jobId: `monthly-${month}` });
  return Response.json({ id }, { status: 202 });
}

export async function GET(request) {
  const job = await reports().getJob(new URL(request.url).searchParams.get('id') ?? '');
  if (!job) return Response.json({ error: 'no such report' }, { status: 404 });
  return Response.json({ state: await job.getState(), progress: job.progress, result: job.returnvalue });
}
