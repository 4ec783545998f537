/** What `inspect` and `watch` look at: whole queues, or one group of each. */
import type { Queue } from '../../index.js';
import { groupDetails, groupLine, groupOverview, lookAtGroup, type GroupReport } from './group-report.js';
import { look, type Look, type QueueReport } from './queue-report.js';
import { details, line, overview } from './report-text.js';

export interface Sight<R> {
  /** What looks at this queue each time that it is called. */
  of(queue: Queue): () => Promise<R>;
  /** Whether a second look tells what this one does not. */
  isPart(report: R): boolean;
  /** As a table. */
  overview(reports: readonly R[]): string[];
  /** Everything about the only one. */
  details(report: R): string[];
  /** For a log. */
  line(report: R, now: Date): string;
}

export const QUEUES: Sight<QueueReport> = {
  of(queue) {
    let before: Look | undefined;
    return async () => (before = await look(queue, before)).report;
  },
  isPart: ({ rates }) => rates === null,
  overview,
  details,
  line,
};

export function groupSight(group: string): Sight<GroupReport> {
  return {
    of: (queue) => () => lookAtGroup(queue, group),
    isPart: () => false,
    overview: groupOverview,
    details: groupDetails,
    line: groupLine,
  };
}
