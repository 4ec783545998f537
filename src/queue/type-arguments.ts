import type { Job } from '../job/job.js';

/* eslint-disable @typescript-eslint/no-explicit-any -- `any` is what lets these match every Job */

/** Data type of a queue declared as `Queue<SomeJob>` or as `Queue<Data>`. */
export type ExtractDataType<DataTypeOrJob, Default> = DataTypeOrJob extends Job<infer D, any, any> ? D : Default;

/** Result type of a queue declared as `Queue<SomeJob>` or as `Queue<Data, Result>`. */
export type ExtractResultType<DataTypeOrJob, Default> = DataTypeOrJob extends Job<any, infer R, any> ? R : Default;

/** Name type of a queue declared as `Queue<SomeJob>` or as `Queue<Data, Result, Name>`. */
export type ExtractNameType<DataTypeOrJob, Default extends string> =
  DataTypeOrJob extends Job<any, any, infer N> ? N : Default;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** The Job class a queue hands out: the one it was declared with, or a `Job` of its three types. */
export type JobBase<T, ResultType, NameType extends string> =
  IsAny<T> extends true
    ? Job<T, ResultType, NameType>
    : T extends Job<any, any, any>
      ? T
      : Job<T, ResultType, NameType>;
