// What the suite asks of a bus's adapter, and what its cases are made of.

import assert from 'node:assert/strict';
import { systemClock } from '../../../foundation/clock.ts';
import { eventuallyMs } from '../../assertions.ts';
import type { Bus, BusCapabilities, BusGroup, GroupDefinition } from '../../../bus/bus.ts';
import type { Delivery, NewMessage, Published } from '../../../bus/bus-message.ts';
import type { BusOptions } from '../../../bus/create-bus.ts';

/** A bus that nobody else uses; disposed by the suite. */
export interface OpenedBus {
  readonly bus: Bus;
  /** The same bus, as another process has it (`crossProcess`). The case disposes it. */
  second?(options?: BusOptions): Promise<Bus>;
  /** Writes bytes to a subject's stream past the bus, as a foreign producer would. */
  inject(subject: string, data: Uint8Array): Promise<void>;
  /**
   * Takes the broker away until the result is called, with everything that it has stored (`restart`).
   * Calls of the bus reject with `BUS_UNAVAILABLE` meanwhile.
   */
  outage?(): Promise<() => Promise<void>>;
  close?(): Promise<void>;
}

/** What an adapter's fixture can do beside what the adapter claims. */
export interface FixtureCapabilities extends BusCapabilities {
  /** The fixture can take the broker away and bring it back. */
  readonly restart: boolean;
}

export interface BusFixture {
  /** What the adapter claims; a case that needs more is skipped, by name. */
  readonly capabilities: FixtureCapabilities;
  /** An empty one each time. */
  open(): Promise<OpenedBus>;
}

export interface BusCase {
  /** A sentence; its topic comes first. */
  readonly name: string;
  /** Why this case says nothing about the adapter: `needs fencedAcks`. */
  readonly skip?: string;
  /** Rejects when the adapter does not do what the name says. */
  readonly run: () => Promise<void>;
}

export interface CaseContext {
  readonly opened: OpenedBus;
  readonly capabilities: FixtureCapabilities;
}

export type BusCases = Readonly<Record<string, (bus: Bus, context: CaseContext) => Promise<void>>>;

/** Longer than any case on any machine. */
export const longLeaseMs = 600_000;
/** Over soon, for those who are to lose it. */
export const shortLeaseMs = 200;

export const queue = 'gbe.tasks.email-send.queue';
export const workers: GroupDefinition = {
  group: 'email-send-workers',
  subject: queue,
  leaseMs: longLeaseMs,
};

export const numbered = (count: number, subject = queue): NewMessage[] =>
  Array.from({ length: count }, (_, n) => ({ subject, payload: { n } }));

export async function publishNumbers(
  bus: Bus,
  count: number,
  subject = queue,
): Promise<readonly Published[]> {
  return bus.publishMany(numbered(count, subject));
}

const numberOf = ({ payload }: { readonly payload: unknown }): number =>
  (payload as { readonly n: number }).n;
export const numbersOf = (messages: readonly { readonly payload: unknown }[]): number[] =>
  messages.map(numberOf);
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** Exactly so many, within the time that any machine needs. */
export async function fetchSome(group: BusGroup, count: number): Promise<Delivery[]> {
  const all: Delivery[] = [];
  const deadlineMs = systemClock.now() + eventuallyMs;
  while (all.length < count) {
    const left = deadlineMs - systemClock.now();
    if (left <= 0) assert.fail(`${all.length} of ${count} messages came`);
    all.push(...(await group.fetch({ limit: count - all.length, waitMs: Math.min(left, 2_000) })));
  }
  return all;
}

export async function fetchOne(group: BusGroup): Promise<Delivery> {
  const [delivery] = await fetchSome(group, 1);
  return delivery as Delivery;
}

/**
 * For claims about extended leases, each with a separate message and group. A machine that stands still for
 * longer than a lease loses it rightly, so that only a longer lease shows anything there. An engine that does
 * not extend leases fails with each of them.
 */
export async function underSomeLease(
  bus: Bus,
  holds: (definition: GroupDefinition & { readonly leaseMs: number }) => Promise<boolean>,
): Promise<void> {
  for (const leaseMs of [300, 1_500, 7_500]) {
    const subject = `gbe.tasks.lease-${leaseMs}.queue`;
    await publishNumbers(bus, 1, subject);
    if (await holds({ group: `lease-${leaseMs}-workers`, subject, leaseMs })) return;
  }
  assert.fail('another member got the message while its lease was extended');
}

/** That nothing is there now; not that nothing comes later. */
export async function nothingIn(group: BusGroup): Promise<void> {
  assert.deepEqual(numbersOf(await group.fetch({ limit: 100, waitMs: 0 })), []);
}

export async function ackAll(deliveries: readonly Delivery[]): Promise<void> {
  for (const outcome of await Promise.all(deliveries.map((each) => each.ack()))) {
    assert.equal(outcome, 'settled');
  }
}

export async function secondOf({ opened }: CaseContext, options?: BusOptions): Promise<Bus> {
  return opened.second?.(options) ?? assert.fail('the fixture has no second process');
}

export const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');
