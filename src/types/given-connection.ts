/** `ConnectionOptionsType` as constructors take it: what they are given does not decide the type, and may be a URL as text. */
export type GivenConnection<ConnectionOptionsType> = NotInferred<ConnectionOptionsType> | string;

/** `T`, which the compiler does not infer from what is given. `NoInfer` is not in TypeScript 5.0. */
export type NotInferred<T> = { it: T }[T extends unknown ? 'it' : never];
