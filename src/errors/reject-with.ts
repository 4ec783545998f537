/** A promise rejected with what was thrown, for methods that must reject and yet are too hot to be `async`. */
export function rejectWith(thrown: unknown): Promise<never> {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- passed on as it came, Error or not
  return Promise.reject(thrown);
}
