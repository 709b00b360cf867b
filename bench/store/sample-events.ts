// The events of this benchmark: bookings of an account, with about 300 bytes of payload and 300 bytes of
// metadata, the same for every subject.

import { createIds } from '../../src/foundation/index.ts';
import { createRandom } from '../random.ts';

export interface SampleEvent {
  readonly id: string;
  readonly type: (typeof types)[number];
  readonly data: Booking;
  readonly metadata: SampleMetadata;
}

export interface Booking {
  /** The number of the event in its store, by which a reader detects a gap. */
  readonly number: number;
  readonly amount: number;
  readonly [detail: string]: unknown;
}

interface SampleMetadata {
  readonly occurredAt: string;
  readonly correlationId: string;
  readonly causationId: string;
  readonly tenant: string;
  readonly aggregate: { readonly bc: string; readonly type: string; readonly id: string };
  readonly user: { readonly id: string; readonly name: string };
}

export const tenant = 'core';
const types = ['account.deposited.v1', 'account.withdrawn.v1'] as const;
const random = createRandom(6);
const ids = createIds();
const bookings = Array.from({ length: 200 }, () => ({
  amount: Math.round(random.next() * 1_000_000) / 100,
  currency: random.pick(['USD', 'EUR', 'ZAR']),
  reference: `INV-2026-${random.below(1_000_000)}`,
  counterparty: {
    name: random.pick(['Acme Retail GmbH', 'Globex Wholesale Ltd', 'Initech Käse & Söhne']),
    iban: 'DE89370400440532013000',
    address: { city: 'Cape Town', zip: '8001', country: 'ZA' },
  },
  valueDate: '2026-11-15',
  note: 'Rent for November, first floor, including water and the share of the lift',
  settled: random.chance(0.5),
}));
const flows = Array.from({ length: 200 }, () => ({
  correlationId: random.uuid(),
  causationId: random.uuid(),
  user: { id: random.uuid(), name: 'Ada Lovelace' },
}));
const occurredAt = '2026-11-15T10:00:00.000Z';

export function streamOf(accountId: string): string {
  return `banking.account.v1-${tenant}-${accountId}`;
}

/** The event with this number for this account; ids are new every time. */
export function sampleEvent(number: number, accountId: string): SampleEvent {
  const at = number % bookings.length;
  return {
    id: ids.next(),
    type: types[number % 4 === 3 ? 1 : 0],
    data: { number, ...bookings[at] } as unknown as Booking,
    metadata: {
      occurredAt,
      ...(flows[at] as (typeof flows)[number]),
      tenant,
      aggregate: { bc: 'banking', type: 'account', id: accountId },
    },
  };
}

/** The balance of the account after all these events. */
export function balanceAfter(balance: number, type: string, { amount }: Booking): number {
  return type === types[0] ? balance + amount : balance - amount;
}
