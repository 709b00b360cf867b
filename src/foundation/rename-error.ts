// Bus and tasks share a connection with other parts. They report its failures under codes of bus and tasks.

import { MillraceError } from './error.ts';

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
