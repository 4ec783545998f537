import { DelayedError } from './delayed-error.js';
import { RATE_LIMIT_ERROR } from './rate-limit-error.js';
import { WaitingChildrenError } from './waiting-children-error.js';
import { WaitingError } from './waiting-error.js';

const MOVES = [DelayedError, WaitingError, WaitingChildrenError];
// An error of another copy of the package, or from a sandbox, has the name alone.
const NAMES = new Set(MOVES.map(({ name }) => name));

/**
 * What a processor says by what it throws: the job goes back to the front of the waiting list, or the processor has moved it by
 * itself. Undefined for any other error: the attempt failed.
 */
export function thrownSignal(error: unknown): 'rateLimited' | 'moved' | undefined {
  const thrown = Object(error) as Partial<Error>;
  if (thrown.message === RATE_LIMIT_ERROR) return 'rateLimited';
  return NAMES.has(thrown.name as string) || MOVES.some((Move) => error instanceof Move) ? 'moved' : undefined;
}
