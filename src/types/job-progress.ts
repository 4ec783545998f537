/** What `job.updateProgress` takes: any JSON value but `null`. */
export type JobProgress = string | boolean | number | object;
