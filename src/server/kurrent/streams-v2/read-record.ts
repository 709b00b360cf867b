// Converts a record of version 2 to an event: properties become metadata, the schema name becomes the type.

import { createIds } from '../../../foundation/ids.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import { detached, type ForeignEvent } from '../events/from-wire.ts';
import { toCount } from '../protocol/wire-number.ts';
import { badRequest } from '../rpc-error.ts';
import { uuidText } from '../uuid.ts';
import type { WireRecord, WireValue } from '../protocol/streams-v2-messages.ts';

const ids = createIds();
const jsonFormat = 1;

export function readRecord({ recordId, properties, schema, data }: WireRecord): ForeignEvent {
  const type = schema?.name ?? '';
  if (type === '') throw badRequest('a record needs a schema name');
  const members = Object.entries(properties).map(([name, value]) => [name, toJson(value)] as const);
  return {
    eventId:
      recordId === undefined || recordId === '' ? ids.next() : uuidText({ string: recordId }),
    type,
    isJson: schema?.format === jsonFormat,
    data: detached(data),
    metadata:
      members.length === 0
        ? Buffer.alloc(0)
        : Buffer.from(JSON.stringify(Object.fromEntries(members))),
  };
}

/** Returns undefined if any state is accepted. */
export function expectedState(state: Parameters<typeof toCount>[0] | undefined): ExpectedRevision {
  if (state === undefined) return 'any';
  const number = toCount(state);
  if (number >= 0) return number;
  if (number === -1) return 'none';
  if (number === -2) return 'any';
  if (number === -4) return 'exists';
  throw badRequest(`invalid expected state of a stream: ${number}`);
}

function toJson(value: WireValue): unknown {
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.numberValue !== undefined) {
    // JSON has no NaN and no infinities.
    return Number.isFinite(value.numberValue) ? value.numberValue : String(value.numberValue);
  }
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.listValue !== undefined) return value.listValue.values.map(toJson);
  if (value.structValue === undefined) return null;
  return Object.fromEntries(
    Object.entries(value.structValue.fields).map(([name, each]) => [name, toJson(each)]),
  );
}
