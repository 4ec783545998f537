/**
 * Resolves after `ms` milliseconds, or at once when the controller aborts.
 * Source: BullMQ 6.7.0 `delay`.
 */
export function delay(ms: number, abortController?: AbortController): Promise<void> {
  return new Promise((resolve) => {
    const signal = abortController?.signal;
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}
