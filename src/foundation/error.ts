// The error type of Millrace: a code to branch on, whether a retry may succeed, and details.

import { errorCodes, type ErrorCode } from './error-codes.ts';

export interface ErrorOptions {
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
  /** Only where one occurrence differs from the table of codes. */
  readonly retryable?: boolean | undefined;
}

/**
 * Every error that Millrace throws. Branch on `code`, not on the class: two copies of the package
 * in one process have two classes.
 *
 * @example
 * import { MillraceError, hasCode } from 'millrace/foundation';
 *
 * try {
 *   throw new MillraceError('PAYLOAD_TOO_LARGE', 'payload has 2 MiB', { details: { bytes: 2_097_152 } });
 * } catch (error) {
 *   if (hasCode(error, 'PAYLOAD_TOO_LARGE')) console.log(error.details['bytes'], error.retryable);
 * }
 */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? errorCodes[code].retryable;
    this.details = options.details ?? {};
  }
}

/**
 * Whether an error has this code, across copies of the package.
 *
 * @example
 * import { hasCode } from 'millrace/foundation';
 *
 * const isConflict = (error: unknown) => hasCode(error, 'NAME_INVALID');
 */
export function hasCode<C extends ErrorCode>(
  error: unknown,
  code: C,
): error is MillraceError & { readonly code: C } {
  return (
    error instanceof Error &&
    error.name === 'MillraceError' &&
    'code' in error &&
    error.code === code
  );
}

/** Runs the work; what it throws is converted. */
export async function convertErrors<T>(
  work: () => Promise<T>,
  convert: (error: unknown) => unknown,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw convert(error);
  }
}

/** Bus and tasks share a connection with other parts, and report its failures under their codes. */
export type PortPrefix = 'BUS' | 'TASKS';

/** Returns other errors unchanged. */
export function renameError(error: unknown, prefix: PortPrefix): unknown {
  if (!(error instanceof MillraceError)) return error;
  const { code, message, retryable, details } = error;
  if (code === 'STORE_CLOSED' || code === 'BUS_CLOSED') return closedError(prefix, error);
  if (code !== 'STORE_UNAVAILABLE' && code !== 'BUS_UNAVAILABLE') return error;
  return new MillraceError(`${prefix}_UNAVAILABLE`, message, { cause: error, retryable, details });
}

export function closedError(prefix: PortPrefix, cause?: unknown): MillraceError {
  const text = prefix === 'BUS' ? 'the bus was closed' : 'the tasks were closed';
  return new MillraceError(`${prefix}_CLOSED`, text, { cause });
}
