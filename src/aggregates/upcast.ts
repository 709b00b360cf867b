// One step in the life of a schema: how an event of an older version reads in the next one.

import type { EventType } from '../contracts/event-type.ts';
import type { Named } from './aggregate.ts';

export interface Upcaster {
  readonly from: string;
  readonly to: string;
  readonly convert: (payload: unknown) => unknown;
}

type Made<Definition> = Definition extends (payload: infer Input) => unknown ? Input : never;

/**
 * Converts payloads on reading; what is stored stays as it was. Steps are chained, so each needs
 * to know the next version only. With definitions instead of names both sides are typed; the
 * result is checked by the schema of the newest version.
 *
 * @example
 * import { upcast } from 'millrace/aggregates';
 *
 * const currencies = upcast('payment.completed.v1', 'payment.completed.v2', (payload) => ({
 *   ...payload,
 *   currency: 'EUR',
 * }));
 */
export function upcast<const From extends Named, const To extends Named>(
  from: From,
  to: To,
  convert: (payload: ReturnType<From['parse']>) => Made<To>,
): Upcaster;
export function upcast<const From extends string, const To extends string>(
  from: EventType<From>,
  to: EventType<To>,
  convert: (payload: Readonly<Record<string, unknown>>) => unknown,
): Upcaster;
export function upcast<Payload>(
  from: string | Named,
  to: string | Named,
  convert: (payload: Payload) => unknown,
): Upcaster {
  return {
    from: typeof from === 'string' ? from : from.type,
    to: typeof to === 'string' ? to : to.type,
    // What the store holds was written as `from`; nobody else calls this.
    convert: (payload) => convert(payload as Payload),
  };
}
