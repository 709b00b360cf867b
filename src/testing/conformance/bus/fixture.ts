// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { systemClock } from '../../../foundation/clock.ts';
import { eventuallyMs } from '../../assertions.ts';
import type { Bus, BusCapabilities, BusGroup, GroupDefinition } from '../../../bus/bus.ts';
import type { Delivery, NewMessage, Published } from '../../../bus/bus-message.ts';
import type { BusOptions } from '../../../bus/create-bus.ts';

/** An isolated bus; disposed by the suite. */
export interface OpenedBus {
  readonly bus: Bus;
  /** Opens the same bus again, as another process does (`crossProcess`). The case disposes the second bus. */
  second?(options?: BusOptions): Promise<Bus>;
  /** Writes raw bytes to the stream of a subject, bypassing the bus. */
  inject(subject: string, data: Uint8Array): Promise<void>;
  /** Replaces the stored record of a group by text that is not valid, without the bus. */
  damageGroup?(group: string): Promise<void>;
  /**
   * Stops the broker until the result is called; its data survives (`restart`). During the outage, calls of the bus
   * reject with `BUS_UNAVAILABLE`.
   */
  outage?(): Promise<() => Promise<void>>;
  close?(): Promise<void>;
}

/** Abilities of the fixture, in addition to the capabilities of the adapter. */
export interface FixtureCapabilities extends BusCapabilities {
  /** The fixture can stop and restart the broker. */
  readonly restart: boolean;
}

export interface BusFixture {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: FixtureCapabilities;
  /** Returns an empty instance each time. */
  open(): Promise<OpenedBus>;
}

export interface BusCase {
  /** The title of the case: the topic, then a sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs fencedAcks`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

export interface CaseContext {
  readonly opened: OpenedBus;
  readonly capabilities: FixtureCapabilities;
}

export type BusCases = Readonly<Record<string, (bus: Bus, context: CaseContext) => Promise<void>>>;

/** A lease that does not expire during a case. */
export const longLeaseMs = 600_000;
/** A lease that expires during the case. */
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

/** Fetches exactly this many messages; fails after a minute. */
export async function fetchSome(group: BusGroup, count: number): Promise<Delivery[]> {
  const all: Delivery[] = [];
  const deadlineMs = systemClock.now() + eventuallyMs;
  while (all.length < count) {
    const left = deadlineMs - systemClock.now();
    if (left <= 0) assert.fail(`${all.length} of ${count} messages arrived`);
    all.push(...(await group.fetch({ limit: count - all.length, waitMs: Math.min(left, 2_000) })));
  }
  return all;
}

export async function fetchOne(group: BusGroup): Promise<Delivery> {
  const [delivery] = await fetchSome(group, 1);
  return delivery as Delivery;
}

/**
 * Tries increasing lease durations, each with a separate message and group. A machine that stalls for longer than the
 * lease may lose the lease; an engine that does not extend leases fails with all durations.
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

/** Asserts that no message is available now. */
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
