/**
 * Emits what a listener threw as `error`. What an `error` listener throws, or an error that nobody listens to, is printed:
 * neither ever reaches whoever emitted the event.
 * @param emit emits the `error` event
 * @returns whether somebody took it
 */
export function emitError(emit: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return emit(error);
  } catch (unheard) {
    print(unheard);
    return false;
  }
}

/** Emits the error of a promise that nobody awaits. */
export function forwardRejection(
  emitter: { emit(event: 'error', error: Error): unknown },
  call: Promise<unknown>,
): void {
  call.catch((error) => emitter.emit('error', error as Error));
}

function print(error: unknown): void {
  try {
    console.error(error);
  } catch {
    console.error('An error was emitted that throws when it is looked at');
  }
}
