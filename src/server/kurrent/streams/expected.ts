// Converts expected revisions between the wire and the store.

import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { toCount, type Long } from '../protocol/wire-number.ts';
import { empty, type Empty, type WireExpected } from '../protocol/wire-types.ts';
import { badRequest } from '../refusal.ts';

export function expectedOf(options: WireExpected, revision: Long | undefined): ExpectedRevision {
  if (revision !== undefined) return toCount(revision);
  if (options.noStream !== undefined) return 'none';
  if (options.streamExists !== undefined) return 'exists';
  if (options.any !== undefined) return 'any';
  throw badRequest('the expected revision is missing');
}

/** `AppendResp.wrong_expected_version`, with its current and its deprecated fields. */
export function wrongVersion(
  expected: ExpectedRevision,
  actual: number,
): Readonly<Record<string, number | Empty>> {
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

/** `event_store.client.WrongExpectedVersion`, the detail of BatchAppend. */
export function wrongVersionDetails(
  expected: ExpectedRevision,
  actual: number,
): Readonly<Record<string, number | Empty>> {
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
