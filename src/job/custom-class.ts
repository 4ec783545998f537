/**
 * Classes of jobs that are the user's: those that inherit from `Job`, and `Job` itself where somebody has replaced what makes jobs of
 * texts, or texts of jobs. Their jobs are made and stored by these members, as in BullMQ; all others the short way.
 */

/** What a class of the library itself had when it was loaded. */
const OWN: unique symbol = Symbol('own');

interface Members {
  readonly fromJSON: unknown;
  readonly asJSON: unknown;
  readonly data: unknown;
}

interface JobStatics {
  readonly fromJSON: unknown;
  readonly prototype: object;
  readonly [OWN]?: Members;
}

function membersOf({ fromJSON, prototype }: JobStatics): Members {
  return {
    fromJSON,
    asJSON: (prototype as { asJSON: unknown }).asJSON,
    // eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
    data: Object.getOwnPropertyDescriptor(prototype, 'data')?.get,
  };
}

/** Marks a class of the library itself. */
export function markOwn(JobClass: JobStatics): void {
  Object.defineProperty(JobClass, OWN, { value: membersOf(JobClass) });
}

/** Whether jobs of this class are made and stored by members of the user's. */
export function isCustom(JobClass: JobStatics): boolean {
  if (!Object.hasOwn(JobClass, OWN)) return true;
  const own = JobClass[OWN] as Members;
  const now = membersOf(JobClass);
  return now.fromJSON !== own.fromJSON || now.asJSON !== own.asJSON || now.data !== own.data;
}
