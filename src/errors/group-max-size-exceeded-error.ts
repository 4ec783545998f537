/**
 * An add was refused: its group has as many jobs as `opts.group.maxSize` lets it have. None of the jobs of the call was added. The message names the group, its
 * size and the limit.
 */
export class GroupMaxSizeExceededError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
    this.code = GROUP_FULL;
  }

  /** `ERR_GROUP_FULL`. */
  readonly code: string;
}

/** The engine's code for it. */
export const GROUP_FULL = 'ERR_GROUP_FULL';
