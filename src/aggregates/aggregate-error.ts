// The errors of this folder, by code.

import { MillraceError, type ErrorOptions } from '../foundation/error.ts';

export type AggregateErrorCode =
  | 'AGGREGATE_BUSY'
  | 'AGGREGATE_INVALID'
  | 'COMMAND_KEY_REUSED'
  | 'COMMAND_REFUSED'
  | 'COMMAND_UNKNOWN'
  | 'EVENT_UNKNOWN'
  | 'EVENT_UNREADABLE';

export function aggregateError(
  code: AggregateErrorCode,
  message: string,
  options: ErrorOptions = {},
): MillraceError {
  return new MillraceError(code, message, options);
}
