// Converts errors of the store to gRPC errors.

import type { MillraceError } from '../../foundation/error.ts';
import type { ErrorCode } from '../../foundation/error-codes.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import { RpcError, status, type RpcErrorParts } from './rpc-error.ts';

/** The numbers of the protocol for expected revisions. */
export function expectedNumber(expected: ExpectedRevision): number {
  if (typeof expected === 'number') return expected;
  return expected === 'any' ? -2 : expected === 'none' ? -1 : -4;
}

/** Converts any error of a handler to a gRPC error, without stacks and payloads. */
export function toRpcError(error: unknown, limits: { readonly appendBytesMax: number }): RpcError {
  if (error instanceof RpcError) return error;
  if (!isMillraceError(error)) {
    return new RpcError('internal error; see the log of the server', {
      status: status.internal,
      cause: error,
    });
  }
  return new RpcError(error.message, { ...partsOf(error, limits), cause: error });
}

function partsOf(error: MillraceError, limits: { readonly appendBytesMax: number }): RpcErrorParts {
  const stream = streamOf(error);
  switch (error.code) {
    case 'VERSION_CONFLICT': {
      const actual = Number(error.details['actual'] ?? -1);
      const expected = expectedNumber((error.details['expected'] ?? 'any') as ExpectedRevision);
      return {
        status: status.failedPrecondition,
        exception: 'wrong-expected-version',
        trailers: {
          'stream-name': stream,
          'expected-version': String(expected),
          'actual-version': String(actual),
        },
      };
    }
    case 'STREAM_DELETED':
      return {
        status: status.failedPrecondition,
        exception: 'stream-deleted',
        trailers: { 'stream-name': stream },
      };
    case 'PAYLOAD_TOO_LARGE':
      return tooLarge(limits.appendBytesMax);
    case 'NOT_ALLOWED':
      return { status: status.permissionDenied, exception: 'access-denied' };
    default:
      return { status: statusOf[error.code] ?? status.internal };
  }
}

/** The stream of an error of the store. */
export function streamOf({ details }: MillraceError): string {
  return typeof details['stream'] === 'string' ? details['stream'] : '';
}

export function tooLarge(appendBytesMax: number): RpcErrorParts {
  return {
    status: status.invalidArgument,
    exception: 'maximum-append-size-exceeded',
    trailers: { 'maximum-append-size': String(appendBytesMax) },
  };
}

const statusOf: Partial<Record<ErrorCode, number>> = {
  NAME_INVALID: status.invalidArgument,
  KEY_TOO_LONG: status.invalidArgument,
  ENVELOPE_INVALID: status.invalidArgument,
  PAYLOAD_NOT_JSON: status.invalidArgument,
  PAYLOAD_INVALID: status.invalidArgument,
  EVENT_UNKNOWN: status.invalidArgument,
  APPEND_INVALID: status.invalidArgument,
  FILTER_INVALID: status.invalidArgument,
  POSITION_INVALID: status.invalidArgument,
  TENANT_MISMATCH: status.permissionDenied,
  SUBJECT_FORGOTTEN: status.failedPrecondition,
  NOT_SUPPORTED: status.unimplemented,
  STORE_CLOSED: status.unavailable,
  STORE_UNAVAILABLE: status.unavailable,
  LEASE_LOST: status.unavailable,
  ABORTED: status.cancelled,
};

/** By name, because several copies of the package may be loaded. */
function isMillraceError(error: unknown): error is MillraceError {
  return error instanceof Error && error.name === 'MillraceError' && 'code' in error;
}
