import type { RateLimiterOptions } from './worker.js';
import type { NativeRateLimit } from '../native/types.js';

/**
 * A worker's limiter as the engine takes it; undefined when it limits nothing. As in BullMQ a `max` below 1 is 1, a
 * fraction counts as one more, and one that is missing, or no number, leaves the number to the queue.
 * @throws TypeError for a limiter that is no object, and for a `max` without a `duration`
 */
export function readLimiter(limiter: RateLimiterOptions | null | undefined): NativeRateLimit | undefined {
  if (!limiter) return undefined;
  if (typeof limiter !== 'object') throw new TypeError(`limiter must be an object, not ${String(limiter)}`);
  const max = Number(limiter.max ?? NaN);
  const duration = Math.floor(Math.abs(Number(limiter.duration ?? NaN)));
  const isLimited = Number.isFinite(max);
  if (isLimited && !Number.isSafeInteger(duration)) {
    throw new TypeError(`limiter.duration must be a finite number of milliseconds, not ${String(limiter.duration)}`);
  }
  if (!(duration > 0)) return undefined;
  return { max: isLimited ? Math.max(1, Math.ceil(max)) : 0, duration };
}

/**
 * Calls `changed` whenever `opts.limiter` is replaced or one of its fields is set: BullMQ reads them at each fetch. What is
 * changed in another way, as in the object that the constructor was given, is noticed by the function that this gives, when it
 * is called. What `readLimiter` refuses is refused there.
 */
export function watchLimiter(
  opts: { limiter?: RateLimiterOptions },
  changed: (limiter: NativeRateLimit | undefined) => void,
): () => void {
  let { max, duration } = opts.limiter ?? {};
  const tell = (limiter: RateLimiterOptions | undefined): void => {
    ({ max, duration } = limiter ?? {});
    changed(readLimiter(limiter));
  };
  const watched = (limiter: RateLimiterOptions | undefined): RateLimiterOptions | undefined =>
    limiter &&
    new Proxy(limiter, {
      set(target, field, value) {
        tell({ ...target, [field]: value as unknown });
        return Reflect.set(target, field, value);
      },
    });
  let limiter = watched(opts.limiter);
  Object.defineProperty(opts, 'limiter', {
    configurable: true,
    enumerable: limiter !== undefined,
    get: () => limiter,
    set(value: RateLimiterOptions | undefined) {
      tell(value);
      limiter = watched(value);
    },
  });
  return () => {
    const now = opts.limiter;
    if (!Object.is(now?.max, max) || !Object.is(now?.duration, duration)) tell(now);
  };
}

/**
 * The time of a rate limit set by hand.
 * @throws Error with the server's text unless it is a whole number of at least 1
 */
export function checkExpireTime(expireTimeMs: number): number {
  const ms = Number(expireTimeMs ?? NaN);
  if (!Number.isSafeInteger(ms)) throw new Error('ERR value is not an integer or out of range');
  if (ms < 1) throw new Error("ERR invalid expire time in 'set' command");
  return ms;
}
