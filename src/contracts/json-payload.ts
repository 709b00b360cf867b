// Payloads: values that JSON represents exactly, up to a size limit.

import { MillraceError } from '../foundation/error.ts';

export interface PayloadLimits {
  readonly payloadBytesMax: number;
  readonly payloadDepthMax: number;
}

export type PayloadOptions = {
  readonly [Limit in keyof PayloadLimits]?: PayloadLimits[Limit] | undefined;
};

export const payloadLimits: PayloadLimits = { payloadBytesMax: 1_048_576, payloadDepthMax: 100 };

export interface EncodedPayload {
  readonly json: string;
  readonly bytes: number;
}

/**
 * Serialises a payload, or throws with the path of a value that JSON cannot represent: `JSON.stringify`
 * silently turns NaN into null and drops functions.
 *
 * @example
 * import { encodePayload } from 'millrace/contracts';
 *
 * const { json, bytes } = encodePayload({ amount: 12.5, currency: 'USD' });
 */
export function encodePayload(payload: unknown, limits: PayloadOptions = {}): EncodedPayload {
  const { payloadBytesMax = payloadLimits.payloadBytesMax } = limits;
  assertJson(payload, limits);
  const json = JSON.stringify(payload);
  const bytes = Buffer.byteLength(json, 'utf8');
  if (bytes > payloadBytesMax) {
    throw new MillraceError(
      'PAYLOAD_TOO_LARGE',
      `the payload has ${bytes} bytes; the limit is ${payloadBytesMax}. Store large data elsewhere and refer to it`,
      { details: { bytes, payloadBytesMax } },
    );
  }
  return { json, bytes };
}

/** The check without the serialisation, for values that are serialised as part of others. */
export function assertJson(value: unknown, limits: PayloadOptions = {}): void {
  const found = unfaithful(value, limits.payloadDepthMax ?? payloadLimits.payloadDepthMax);
  if (found !== undefined) throw notJson(found.path, found.reason);
}

interface Unfaithful {
  readonly path: string;
  readonly reason: string;
}

/** The first value that JSON would change; its path is built only when one is found. */
function unfaithful(value: unknown, depthLeft: number): Unfaithful | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : { path: '', reason: `is ${value}` };
    case 'object':
      if (value === null) return undefined;
      if (depthLeft === 0) return { path: '', reason: 'is nested too deep, or refers to itself' };
      return Array.isArray(value)
        ? unfaithfulItem(value, depthLeft - 1)
        : unfaithfulMember(value, depthLeft - 1);
    default:
      return { path: '', reason: `is ${value === undefined ? 'undefined' : `a ${typeof value}`}` };
  }
}

function unfaithfulItem(items: readonly unknown[], depthLeft: number): Unfaithful | undefined {
  for (let index = 0; index < items.length; index += 1) {
    const found = unfaithful(items[index], depthLeft);
    if (found !== undefined) return { path: `/${index}${found.path}`, reason: found.reason };
  }
  return undefined;
}

function unfaithfulMember(value: object, depthLeft: number): Unfaithful | undefined {
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? { path: '', reason: 'is an invalid date' } : undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !('toJSON' in value)) {
    return { path: '', reason: `is a ${value.constructor.name}, not a plain object` };
  }
  for (const key in value) {
    const member: unknown = value[key as keyof typeof value];
    // An absent optional field, which JSON omits.
    if (member === undefined) continue;
    const found = unfaithful(member, depthLeft);
    if (found !== undefined) return { path: `/${key}${found.path}`, reason: found.reason };
  }
  return undefined;
}

function notJson(path: string, reason: string): MillraceError {
  return new MillraceError(
    'PAYLOAD_NOT_JSON',
    `the value at '${path === '' ? '/' : path}' of the payload ${reason}, which JSON cannot represent`,
    { details: { path, reason } },
  );
}
