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
