import { DelayedError } from './delayed-error.js';
import { WaitingChildrenError } from './waiting-children-error.js';
import { WaitingError } from './waiting-error.js';

const MOVES = [DelayedError, WaitingError, WaitingChildrenError];
// An error of another copy of the package, or from a sandbox, has the name alone.
const NAMES = new Set(MOVES.map(({ name }) => name));

/** Whether the error says that the processor has moved its job by itself. */
export function isMove(error: unknown): boolean {
  const { name } = Object(error) as Partial<Error>;
  return NAMES.has(name as string) || MOVES.some((Move) => error instanceof Move);
}
