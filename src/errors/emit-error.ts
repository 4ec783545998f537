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
    console.error(unheard);
    return false;
  }
}
