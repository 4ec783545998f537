export default async (job) => ['esm', job.data];
