// Errors of version 2 of the protocol, with typed details in the trailers.

import { hasCode } from '../../../foundation/error.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { Fields, Wire } from '../protocol/message.ts';
import { nothing } from '../protocol/shared-messages.ts';
import {
  accessDeniedError,
  consistencyError,
  recordSizeError,
  revisionConflictError,
  streamError,
  transactionSizeError,
} from '../protocol/streams-v2-messages.ts';
import { RpcError, status, type StatusDetails } from '../rpc-error.ts';
import { expectedNumber, streamOf } from '../to-rpc-error.ts';

function named<Message extends Fields>(
  type: string,
  message: Message,
  value: Wire<Message>,
): StatusDetails {
  return { type: `kurrentdb.protocol.v2.streams.errors.${type}`, message, value };
}

function aboutStream(type: string, stream: string): StatusDetails {
  return named(type, streamError, { stream });
}

/** Adds details to errors of the store; other errors are unchanged. */
export function withDetails(error: unknown, deleted: 'soft' | 'tombstone'): unknown {
  if (hasCode(error, 'VERSION_CONFLICT')) {
    const { stream, expected, actual } = error.details;
    return new RpcError(error.message, {
      status: status.failedPrecondition,
      details: named('StreamRevisionConflictErrorDetails', revisionConflictError, {
        stream: String(stream),
        expectedRevision: expectedNumber(expected as ExpectedRevision),
        actualRevision: Number(actual ?? -1),
      }),
      cause: error,
    });
  }
  if (hasCode(error, 'STREAM_DELETED')) {
    const type = deleted === 'soft' ? 'StreamDeletedErrorDetails' : 'StreamTombstonedErrorDetails';
    return new RpcError(error.message, {
      status: status.failedPrecondition,
      details: aboutStream(type, streamOf(error)),
      cause: error,
    });
  }
  if (error instanceof RpcError && error.parts.exception === 'access-denied') {
    return new RpcError(error.message, {
      ...error.parts,
      details: {
        type: 'kurrent.rpc.AccessDeniedErrorDetails',
        message: accessDeniedError,
        value: { operation: 'append' },
      },
    });
  }
  return error;
}

export function recordTooLarge(
  record: { readonly stream: string; readonly recordId: string; readonly size: number },
  maxSize: number,
): RpcError {
  return new RpcError(`a record of stream '${record.stream}' exceeds ${maxSize} bytes`, {
    status: status.invalidArgument,
    details: named('AppendRecordSizeExceededErrorDetails', recordSizeError, { ...record, maxSize }),
  });
}

export function transactionTooLarge(size: number, maxSize: number): RpcError {
  return new RpcError(`the append exceeds ${maxSize} bytes`, {
    status: status.aborted,
    details: named('AppendTransactionSizeExceededErrorDetails', transactionSizeError, {
      size,
      maxSize,
    }),
  });
}

export function alreadyInSession(stream: string): RpcError {
  return new RpcError(`duplicate stream '${stream}' in the append`, {
    status: status.aborted,
    details: aboutStream('StreamAlreadyInAppendSessionErrorDetails', stream),
  });
}

export function emptySession(): RpcError {
  return new RpcError('the session has no requests', {
    status: status.failedPrecondition,
    details: named('AppendSessionNoRequestsErrorDetails', nothing, {}),
  });
}

export interface Violation {
  readonly checkIndex: number;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly actual: number;
}

export function inconsistent(violations: readonly Violation[]): RpcError {
  const [first] = violations;
  return new RpcError(`stream '${first?.stream ?? ''}' is not in the expected state`, {
    status: status.failedPrecondition,
    details: named('AppendConsistencyViolationErrorDetails', consistencyError, {
      violations: violations.map(({ checkIndex, stream, expected, actual }) => ({
        checkIndex,
        streamState: {
          stream,
          expectedState: expectedNumber(expected),
          actualState: actual,
        },
      })),
    }),
  });
}
