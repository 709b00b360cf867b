// Converts expected revisions between the wire and the store.

import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { toCount } from '../protocol/wire-number.ts';
import { empty } from '../protocol/shared-messages.ts';
import type {
  WireExpected,
  WireWrongExpectedVersion,
  WireWrongVersion,
} from '../protocol/streams-messages.ts';
import { badRequest } from '../rpc-error.ts';

export function expectedOf(
  options: WireExpected,
  revision: Parameters<typeof toCount>[0] | undefined,
): ExpectedRevision {
  if (revision !== undefined) return toCount(revision);
  if (options.noStream !== undefined) return 'none';
  if (options.streamExists !== undefined) return 'exists';
  if (options.any !== undefined) return 'any';
  throw badRequest('the expected revision is missing');
}

/** With the current and the deprecated fields. */
export function wrongVersion(expected: ExpectedRevision, actual: number): WireWrongVersion {
  return {
    ...(actual < 0
      ? { currentNoStream: empty, oldNoStream: empty }
      : { currentRevision: actual, oldCurrentRevision: actual }),
    ...(typeof expected === 'number'
      ? { expectedRevision: expected, oldExpectedRevision: expected }
      : expected === 'any'
        ? { expectedAny: empty, oldAny: empty }
        : expected === 'exists'
          ? { expectedStreamExists: empty, oldStreamExists: empty }
          : { expectedNoStream: empty }),
  };
}

/** The detail of BatchAppend. */
export function wrongVersionDetails(
  expected: ExpectedRevision,
  actual: number,
): WireWrongExpectedVersion {
  return {
    ...(actual < 0 ? { currentNoStream: empty } : { currentStreamRevision: actual }),
    ...(typeof expected === 'number'
      ? { expectedStreamPosition: expected }
      : expected === 'any'
        ? { expectedAny: empty }
        : expected === 'exists'
          ? { expectedStreamExists: empty }
          : { expectedNoStream: empty }),
  };
}
