// A refused batch: a status of its own inside an answer that is otherwise fine.

import { hasCode } from '../../../foundation/error.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { status } from '../refusal.ts';
import type { StatusDetails } from '../status-details.ts';
import { toRefusal } from '../to-refusal.ts';
import { wrongVersionDetails } from './expected.ts';
import { wireStream } from './stream-name.ts';

export interface BatchError {
  readonly code: number;
  readonly message: string;
  /** Clients read nothing but this. */
  readonly details: StatusDetails;
}

export function batchError(
  error: unknown,
  limits: { readonly appendBytesMax: number },
): BatchError {
  if (hasCode(error, 'VERSION_CONFLICT')) {
    const expected = error.details['expected'] as ExpectedRevision;
    return {
      code: status.failedPrecondition,
      message: error.message,
      details: named(
        'WrongExpectedVersion',
        wrongVersionDetails(expected, Number(error.details['actual'])),
      ),
    };
  }
  const { message, parts } = toRefusal(error, limits);
  return { code: parts.status, message, details: detailsOf(message, parts, limits) };
}

function detailsOf(
  message: string,
  { status: code, exception, trailers }: ReturnType<typeof toRefusal>['parts'],
  { appendBytesMax }: { readonly appendBytesMax: number },
): StatusDetails {
  switch (exception) {
    case 'stream-deleted':
      return named('StreamDeleted', {
        streamIdentifier: wireStream(trailers?.['stream-name'] ?? ''),
      });
    case 'maximum-append-size-exceeded':
      return named('MaximumAppendSizeExceeded', { maxAppendSize: appendBytesMax });
    case 'access-denied':
      return named('AccessDenied', {}, 'Empty');
    default:
  }
  if (code === status.deadlineExceeded) return named('Timeout', {}, 'Empty');
  if (code === status.invalidArgument) return named('BadRequest', { message });
  return named('Unknown', {}, 'Empty');
}

function named(name: string, value: object, codec = name): StatusDetails {
  return {
    type: `event_store.client.${name}`,
    codec: `event_store.client.${codec}`,
    value,
  };
}
