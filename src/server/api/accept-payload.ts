// What may be appended from outside to streams that a loaded module lives by: whoever reads them trusts
// that their events fit, so one that does not would stop its aggregate for good.

import type { ParsedStreamName } from '../../contracts/stream-name.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { ApiPlatform } from './api-context.ts';

type Place = Pick<ParsedStreamName, 'bc' | 'agg' | 'version'>;

/** The payload as it is written: of an aggregate's event, as its schema puts it out. */
export function acceptPayload(
  { modules }: ApiPlatform,
  { bc, agg, version }: Place,
  { type, payload }: { readonly type: string; readonly payload: unknown },
): unknown {
  const isHere = (each: { readonly bc: string; readonly name: string; readonly version: number }) =>
    each.bc === bc && each.name === agg && each.version === version;
  if (modules.sagas.some(isHere)) {
    throw new MillraceError('NOT_ALLOWED', 'only the saga itself writes to its stream', {
      details: { field: 'stream' },
    });
  }
  const aggregate = modules.aggregates.get(agg);
  if (aggregate === undefined || !isHere(aggregate)) return payload;
  const known = aggregate.events.find((each) => each.type === type);
  if (known !== undefined) return known.parse(payload);
  throw new MillraceError('EVENT_UNKNOWN', `'${type}' is no event of ${bc}.${agg}.v${version}`, {
    details: { field: 'type', type },
  });
}
