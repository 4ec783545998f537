import { ErrorCode } from '../errors/error-code.js';
import type { NativeError } from './types.js';
import { ConnectionClosedError } from '../errors/connection-closed-error.js';
import { GROUP_FULL, GroupMaxSizeExceededError } from '../errors/group-max-size-exceeded-error.js';
import { ReplyError, type RefusedCommand } from '../errors/reply-error.js';
import { UnrecoverableError } from '../errors/unrecoverable-error.js';
import { systemFields } from './system-error.js';

/** An error of the engine as callers and listeners see it: `code` is a number (`ErrorCode`) or a system code. */
export interface CodedError extends Error {
  code?: number | string;
  /** What the server refused. */
  command?: RefusedCommand;
}

/**
 * The JavaScript error for one reported by the engine in a message. Engine errors carry BullMQ's text and its negative
 * number as `code`, connection errors the system's code (`ECONNREFUSED`, ...).
 */
export function errorFromNative(native: NativeError): CodedError {
  const error: CodedError =
    native.number === ErrorCode.JobHasFailedChildren ? new UnrecoverableError(native.message) : named(native);
  return coded(error, native.number ?? native.code);
}

/** An error of the class that its name says. The command is copied: it may be of another realm. */
function named({
  name,
  message,
  code,
  command,
}: Pick<CodedError, 'message' | 'command' | 'code'> & { name?: string }): CodedError {
  if (code === GROUP_FULL) return new GroupMaxSizeExceededError(message);
  if (name !== 'ReplyError') return new Error(message);
  return new ReplyError(message, command && { name: command.name, args: Array.from(command.args) });
}

function coded(error: CodedError, code: number | string | undefined): CodedError {
  if (code === undefined) return error;
  return Object.assign(error, { code }, typeof code === 'string' && systemFields(error.message));
}

/**
 * The same error, made here, in this realm and with this stack. The addon's has none, and one that several callers share has
 * that of another place.
 */
export function remade(error: unknown): CodedError {
  const { message, code } = error as CodedError;
  if (error instanceof ConnectionClosedError) return new ConnectionClosedError(message);
  return coded(named(error as CodedError), code);
}

/** What a call of the addon threw, as an Error of this realm. */
export function ownError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : remade(thrown);
}

/**
 * A promise that is rejected with such an error. A promise that is resolved with this one waits for it from the second turn on:
 * the error is made then, and its stack tells who awaits that promise.
 */
export async function rejectedWith(reason: NativeError | Error): Promise<never> {
  const turn = Promise.resolve();
  await turn;
  await turn;
  throw reason instanceof Error ? remade(reason) : errorFromNative(reason);
}

/** What an engine call gives; the one error of which no try is left becomes an UnrecoverableError. */
export async function asUnrecoverable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const { message, code } = error as CodedError;
    throw code === ErrorCode.JobHasFailedChildren ? errorFromNative({ message, number: code }) : error;
  }
}
