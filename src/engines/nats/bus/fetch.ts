// Fetches and settles messages for the members of a group. JetStream accepts an ack of any delivery of a message, even an
// old one. Therefore a member whose lease has expired by its local clock sends no ack.

import type { Msg } from '@nats-io/transport-node';
import type {
  BusEngine,
  EngineEntry,
  FetchRequest,
  GroupSettings,
  LeasedEntry,
  Settlement,
} from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { unknownGroup } from '../../../bus/group-errors.ts';
import type { Append } from './append.ts';
import type { BusConsumers, GroupConsumers } from './consumers.ts';
import type { BusParts } from './streams.ts';
import { consumerOf, messageKeyOf, toDelivered } from '../connection/delivered-message.ts';
import { createPuller, type Pulled, type Puller } from '../connection/jetstream-puller.ts';
import { hasNoResponders } from '../connection/jetstream-wire.ts';

interface Member {
  readonly found: GroupConsumers;
  readonly main: Puller;
  readonly redo: Puller;
  redoSeenMs: number;
}

/** How often a busy member polls for messages that were replayed to its group; a waiting member gets them immediately. */
const redoEveryMs = 1_000;
const triesMax = 3;
const nak = '-NAK';
/** Expired leases are deleted when this number is reached. */
const sweepAt = 10_000;

export function createBusLeases(
  { wire, layout }: BusParts,
  consumers: BusConsumers,
  append: Append,
): Pick<BusEngine, 'fetch' | 'settle'> {
  /** Message → its newest delivery in this process, and the `performance.now()` at which its lease expires. */
  const leases = new Map<string, { readonly token: string; readonly untilMs: number }>();

  /** One member per settings object; a concurrent second fetch gets other pullers. */
  const members = new WeakMap<GroupSettings, Member>();

  function release(tokens: readonly string[]): void {
    // If returning the messages fails, their leases expire.
    wire.send(tokens.map((subject) => ({ subject, data: nak }))).catch(() => undefined);
  }

  async function memberOf(settings: GroupSettings): Promise<Member> {
    const found = await consumers.find(settings.name);
    const before = members.get(settings);
    if (before?.found === found && !before.main.isBusy && !before.redo.isBusy) return before;
    const from = { stream: found.stream, consumer: found.main };
    const second = { stream: found.redoStream, consumer: found.redo };
    const releaseAll = (messages: readonly Msg[]): void =>
      release(messages.map(({ reply = '' }) => reply));
    const member = {
      found,
      main: createPuller(wire, { from, second }, releaseAll),
      redo: createPuller(wire, { from: second }, releaseAll),
      redoSeenMs: Number.NEGATIVE_INFINITY,
    };
    members.set(settings, member);
    return member;
  }

  /** Returns undefined if a consumer does not exist. */
  async function pull(
    member: Member,
    { maxAckPending }: GroupSettings,
    { limit, waitMs, signal }: FetchRequest,
  ): Promise<readonly Pulled[] | undefined> {
    const batch = Math.min(limit, maxAckPending);
    const nowMs = performance.now();
    if (waitMs === 0 || nowMs - member.redoSeenMs > redoEveryMs) {
      member.redoSeenMs = nowMs;
      const redone = await member.redo.take({ batch, waitMs: 0, signal });
      if (redone === undefined || redone.length > 0) return redone;
    }
    return member.main.take({ batch, waitMs, signal });
  }

  /** Redeliveries arrive first, in the order of their release, so the messages are sorted. */
  function lease(pulled: readonly Pulled[], leaseMs: number): LeasedEntry[] {
    sweep();
    return pulled
      .map(({ message, atMs }) => ({ ...toDelivered(message, layout), untilMs: atMs + leaseMs }))
      .toSorted((a, b) => a.sequence - b.sequence)
      .map(({ entry, deliveryCount, ackSubject: token, untilMs }) => {
        leases.set(messageKeyOf(token), { token, untilMs });
        return { ...entry, token, deliveryCount };
      });
  }

  function sweep(): void {
    if (leases.size < sweepAt) return;
    const nowMs = performance.now();
    for (const [key, { untilMs }] of leases) if (untilMs < nowMs) leases.delete(key);
  }

  return {
    async fetch(group, request) {
      for (let round = 0; round < triesMax; round += 1) {
        const pulled = await pull(await memberOf(group), group, request);
        if (pulled !== undefined) return lease(pulled, group.leaseMs);
        consumers.forget(group.name);
      }
      throw unknownGroup(group.name);
    },

    async settle({ leaseMs }, settlements) {
      const nowMs = performance.now();
      const live = settlements.filter(({ token }) => {
        const newest = leases.get(messageKeyOf(token));
        return newest?.token === token && newest.untilMs > nowMs;
      });
      const letters = live.flatMap((each): EngineEntry[] =>
        each.kind === 'dead' ? [each.letter] : [],
      );
      const window = { dedupeWindowMs: busLimits.dedupeWindowMsDefault };
      if (letters.length > 0) await append(letters, window);
      const stale = await sendAcks(live);
      const settled = new Set(live.filter((each) => !stale.has(consumerOf(each.token))));
      for (const each of live) {
        const { kind, token } = each;
        const key = messageKeyOf(token);
        // The message was delivered again since, so the lease belongs to another delivery.
        if (leases.get(key)?.token !== token) continue;
        if (kind !== 'extend' || !settled.has(each)) leases.delete(key);
        else leases.set(key, { token, untilMs: nowMs + leaseMs });
      }
      return settlements.map((each) => (settled.has(each) ? 'settled' : 'stale'));
    },
  };

  /** Returns the consumers that do not exist. A consumer handles acks in order, so only its last ack needs a reply. */
  async function sendAcks(settlements: readonly Settlement[]): Promise<ReadonlySet<string>> {
    const lasts = new Map(settlements.map((each) => [consumerOf(each.token), each]));
    const withReply = new Set(lasts.values());
    const sending = wire.send(
      settlements.filter((each) => !withReply.has(each)).map((each) => outgoing(each)),
    );
    const [replies] = await Promise.all([
      wire.requestAll([...withReply].map((each) => outgoing(each))),
      sending,
    ]);
    return new Set([...lasts.keys()].filter((_, at) => isMissing(replies[at])));
  }
}

function isMissing(reply: Msg | undefined): boolean {
  return reply !== undefined && hasNoResponders(reply);
}

function outgoing(settlement: Settlement): { readonly subject: string; readonly data: string } {
  return { subject: settlement.token, data: bodyOf(settlement) };
}

function bodyOf(settlement: Settlement): string {
  const { kind } = settlement;
  if (kind === 'ack' || kind === 'dead') return '+ACK';
  if (kind === 'extend') return '+WPI';
  const delayMs = kind === 'nack' ? settlement.delayMs : 0;
  return delayMs === 0 ? nak : `${nak} {"delay":${delayMs * 1_000_000}}`;
}
