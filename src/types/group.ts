/** A group that has jobs. */
export interface GroupWithStatus {
  /** The group. */
  id: string;
  /** How it stands. */
  status: GroupStatus;
}

/** A group that has jobs, and how many wait in it. */
export interface GroupWithCount {
  /** The group. */
  id: string;
  /** Jobs that wait in it. */
  count: number;
}

/** How a group with jobs stands. */
export type GroupStatus = 'waiting' | 'limited' | 'maxed' | 'paused';
