// UUIDs are text or two signed 64-bit halves on the wire; stores accept any text as an event id.

import { idFromKey } from '../../foundation/ids.ts';
import { toBigInt } from './protocol/wire-number.ts';
import type { WireUuid } from './protocol/shared-messages.ts';
import { badRequest } from './rpc-error.ts';

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function uuidText(uuid: WireUuid | undefined): string {
  const structured = uuid?.structured;
  if (structured !== undefined) {
    const hex = halfHex(structured.mostSignificantBits) + halfHex(structured.leastSignificantBits);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
  const text = uuid?.string ?? '';
  if (shape.test(text)) return text;
  const lower = text.toLowerCase();
  if (shape.test(lower)) return lower;
  throw badRequest(`'${text.slice(0, 50)}' is not a UUID`);
}

/** The wire needs UUIDs: other event ids are mapped to one, always the same for the same id. */
export function toUuid(eventId: string): string {
  if (shape.test(eventId)) return eventId;
  const lower = eventId.toLowerCase();
  return shape.test(lower) ? lower : idFromKey(eventId);
}

export function wireUuid(text: string, structured: boolean): WireUuid {
  if (!structured) return { string: text };
  const hex = text.replaceAll('-', '');
  return {
    structured: {
      mostSignificantBits: halfLong(hex.slice(0, 16)),
      leastSignificantBits: halfLong(hex.slice(16)),
    },
  };
}

function halfHex(half: Parameters<typeof toBigInt>[0]): string {
  return BigInt.asUintN(64, toBigInt(half)).toString(16).padStart(16, '0');
}

function halfLong(hex: string): { low: number; high: number; unsigned: boolean } {
  return {
    low: Number.parseInt(hex.slice(8), 16) | 0,
    high: Number.parseInt(hex.slice(0, 8), 16) | 0,
    unsigned: false,
  };
}
