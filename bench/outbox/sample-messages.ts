// The messages of this benchmark: about 305 bytes of JSON each, the same for every subject.

import { createRandom } from '../random.ts';

export interface SampleMessage {
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly integrationType: string;
  readonly eventType: string;
  readonly tenantId: string;
  readonly correlationId: string;
  readonly payload: { readonly paymentId: string; readonly [detail: string]: unknown };
}

const random = createRandom(7);
const tenants = Array.from({ length: 20 }, (_, at) => `tenant-${at}`);
const destinations = ['webhook:partner-x', 'webhook:partner-y', 'email:receipts'];
let number = 0;

/** New messages; by default of twenty tenants in turn. */
export function sampleMessages(count: number, tenantId?: string): readonly SampleMessage[] {
  return Array.from({ length: count }, () => {
    number += 1;
    const paymentId = `p${number}`;
    return {
      sourceStreamId: `paymenthub.payment.v1-core-${paymentId}`,
      sourceEventId: random.uuid(),
      integrationType: random.pick(destinations),
      eventType: 'payment.completed.v1',
      tenantId: tenantId ?? random.pick(tenants),
      correlationId: random.uuid(),
      payload: { paymentId, amount: random.below(1_000_000) / 100, currency: 'EUR' },
    };
  });
}

/** Splits the messages into batches that every subject accepts. */
export function* inBatches<T>(items: readonly T[], size = 1_000): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
