// Envelopes to validate: varied valid ones, and every kind of invalid one that a service receives.

import type { Random } from '../random.ts';
import { createNameParts, type NameParts } from './names.ts';

type Fields = Record<string, unknown>;

export function createEnvelopes(random: Random, count: number): unknown[] {
  return createNameParts(random, { count }).map((parts) =>
    overTheWire(validEnvelope(random, parts)),
  );
}

/** The kinds of errors take turns. */
export function createInvalidEnvelopes(random: Random, count: number): unknown[] {
  return createNameParts(random, { count }).map((parts, index) => {
    const spoil = mistakes[index % mistakes.length] ?? ((): unknown => null);
    return overTheWire(spoil(validEnvelope(random, parts)));
  });
}

/** Parsed from JSON, so that the objects have the same shapes as received documents. */
function overTheWire(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document));
}

function validEnvelope(random: Random, { bc, agg, action, v, tenant, id }: NameParts): Fields {
  const eventId = random.uuid();
  return {
    type: `${agg}.${action}.v${v}`,
    eventId,
    occurredAt: occurredAt(random),
    correlationId: random.chance(0.3) ? eventId : random.uuid(),
    ...(random.chance(0.6) ? { causationId: random.uuid() } : {}),
    ...(random.chance(0.4) ? { idempotencyKey: `${tenant}|${bc}|${action}|${id}` } : {}),
    tenant,
    aggregate: { bc, type: agg, id, ...(random.chance(0.7) ? { version: random.below(500) } : {}) },
    ...(random.chance(0.5)
      ? {
          user: {
            id: random.uuid(),
            email: `user${random.below(999)}@example.com`,
            roles: ['maker'],
          },
        }
      : {}),
    ...(random.chance(0.3) ? { headers: { source: 'MakerModule', attempt: random.below(5) } } : {}),
    payload: createPayload(random),
  };
}

function occurredAt(random: Random): string {
  const time = new Date(
    Date.UTC(2020, 0, 1) + random.below(6 * 365 * 86_400) * 1_000,
  ).toISOString();
  if (random.chance(0.8)) return time;
  return random.chance(0.5) ? time.replace('.000Z', 'Z') : time.replace('Z', '+02:00');
}

export function createPayload(random: Random): unknown {
  if (random.chance(0.05)) return random.pick<unknown>([null, 'done', 42, ['a', 'b'], true]);
  const lines = Array.from({ length: random.below(6) }, (_item, line) => ({
    line,
    sku: `sku-${random.below(10_000)}`,
    quantity: 1 + random.below(9),
    price: Math.round(random.next() * 100_000) / 100,
  }));
  return {
    amount: Math.round(random.next() * 1_000_000) / 100,
    currency: random.pick(['USD', 'EUR', 'ZAR']),
    status: random.pick(['requested', 'completed', 'failed']),
    settled: random.chance(0.5),
    note: random.chance(0.5) ? 'Käufer bezahlt später – siehe Vertrag' : null,
    customer: {
      id: random.uuid(),
      name: 'Ada Lovelace',
      address: { city: 'Cape Town', zip: '8001' },
    },
    lines,
  };
}

const mistakes: readonly ((envelope: Fields) => unknown)[] = [
  (envelope) => ({ ...envelope, type: 'PaymentCompleted' }),
  (envelope) => ({ ...envelope, type: 'payment.completed' }),
  (envelope) => without(envelope, 'eventId'),
  (envelope) => ({ ...envelope, eventId: '' }),
  (envelope) => ({ ...envelope, eventId: 42 }),
  (envelope) => ({ ...envelope, occurredAt: '2025-02-30T10:00:00.000Z' }),
  (envelope) => ({ ...envelope, occurredAt: '30/09/2025' }),
  (envelope) => ({ ...envelope, correlationId: 'a\u0000b' }),
  (envelope) => ({ ...envelope, tenant: 'Core' }),
  (envelope) => ({ ...envelope, tenant: null }),
  (envelope) => ({ ...envelope, aggregate: without(envelope['aggregate'] as Fields, 'id') }),
  (envelope) => ({ ...envelope, aggregate: 'payment' }),
  (envelope) => ({ ...envelope, user: 'ada' }),
  (envelope) => ({ ...envelope, headers: ['a'] }),
  (envelope) => without(envelope, 'payload'),
  (envelope) => ({ ...envelope, metadata: {} }),
  (envelope) => [envelope],
  () => null,
];

function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));
}
