/** A value from JSON text that lies in Redis; `otherwise` when somebody else has written it and it is none. */
export function parseStored<T>(text: string, otherwise: T): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    return otherwise;
  }
}
