/** Reference to a parent as it is stored with a child; the flags mirror the child's failure options. */
export interface ParentKeys {
  /** Id of the parent job. */
  id?: string;
  /** Qualified name of the parent's queue: `<prefix>:<queue>`. */
  queueKey: string;
  /** `failParentOnFailure` */
  fpof?: boolean;
  /** `removeDependencyOnFailure` */
  rdof?: boolean;
  /** `ignoreDependencyOnFailure` */
  idof?: boolean;
  /** `continueParentOnFailure` */
  cpof?: boolean;
}

/** How an add is tied to a parent or to children; a flow's adds are tied by the engine here. Source: BullMQ 6.7.0 `ParentKeyOpts`. */
export type ParentKeyOpts = {
  /** Whether the job begins in `waiting-children`. */
  addToWaitingChildren?: boolean;
  /** Whether the end of a child that has completed already leaves its parent where it is. */
  deferParentRelease?: boolean;
  /** Key of what the parent waits for. */
  parentDependenciesKey?: string;
  /** Key of the parent. */
  parentKey?: string;
};
