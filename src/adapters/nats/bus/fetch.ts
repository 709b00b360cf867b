// Leases for the members of a group: fetched, and settled. JetStream takes an ack of any delivery of a
// message, the newest or not, so whoever has lost its lease by its own clock sends none.

import type { Msg } from '@nats-io/transport-node';
import type {
  EngineEntry,
  FetchRequest,
  GroupSettings,
  LeasedEntry,
  Settlement,
} from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import type { SettleOutcome } from '../../../bus/bus-message.ts';
import { unknownGroup } from '../../../bus/group-errors.ts';
import type { Append } from './append.ts';
import type { BusConsumers, GroupConsumers } from './consumers.ts';
import type { BusParts } from './streams.ts';
import { consumerOf, messageKeyOf, toDelivered } from '../connection/delivered-message.ts';
import { createPuller, type Pulled, type Puller } from '../connection/jetstream-puller.ts';
import { isUnanswered } from '../connection/jetstream-wire.ts';

export interface BusLeases {
  fetch(group: GroupSettings, request: FetchRequest): Promise<readonly LeasedEntry[]>;
  settle(
    group: GroupSettings,
    settlements: readonly Settlement[],
  ): Promise<readonly SettleOutcome[]>;
}

interface Member {
  readonly found: GroupConsumers;
  readonly main: Puller;
  readonly redo: Puller;
  redoSeenMs: number;
}

/** A busy member looks so often for what was replayed to its group; one that waits hears it at once. */
const redoEveryMs = 1_000;
const triesMax = 3;
const nak = '-NAK';
/** Forgotten leases are swept out when there are so many. */
const sweepAt = 10_000;

export function createBusLeases(
  { wire, layout }: BusParts,
  consumers: BusConsumers,
  append: Append,
): BusLeases {
  /** Message → its newest delivery here, and when that lease ends by the clock of `performance`. */
  const leases = new Map<string, { readonly token: string; readonly untilMs: number }>();

  /** A member is its settings; whoever fetches twice at once gets another pair. */
  const members = new WeakMap<GroupSettings, Member>();

  function giveBack(tokens: readonly string[]): void {
    // Not told: their leases run out, then.
    wire.send(tokens.map((subject) => ({ subject, data: nak }))).catch(() => undefined);
  }

  async function memberOf(settings: GroupSettings): Promise<Member> {
    const found = await consumers.find(settings.name);
    const before = members.get(settings);
    if (before?.found === found && !before.main.isBusy && !before.redo.isBusy) return before;
    const from = { stream: found.stream, consumer: found.main };
    const beside = { stream: found.redoStream, consumer: found.redo };
    const tooMany = (messages: readonly Msg[]): void =>
      giveBack(messages.map(({ reply = '' }) => reply));
    const member = {
      found,
      main: createPuller(wire, { from, beside }, tooMany),
      redo: createPuller(wire, { from: beside }, tooMany),
      redoSeenMs: Number.NEGATIVE_INFINITY,
    };
    members.set(settings, member);
    return member;
  }

  /** Undefined: a consumer is missing. */
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

  /** What comes again comes first, but in the order in which it was given back. */
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
      const stale = await told(live);
      const settled = new Set(live.filter((each) => !stale.has(consumerOf(each.token))));
      for (const each of live) {
        const { kind, token } = each;
        const key = messageKeyOf(token);
        // Handed out again meanwhile: that lease is another one's.
        if (leases.get(key)?.token !== token) continue;
        if (kind !== 'extend' || !settled.has(each)) leases.delete(key);
        else leases.set(key, { token, untilMs: nowMs + leaseMs });
      }
      return settlements.map((each) => (settled.has(each) ? 'settled' : 'stale'));
    },
  };

  /** A consumer takes them one by one: the answer to its last one says that all are done. */
  async function told(settlements: readonly Settlement[]): Promise<ReadonlySet<string>> {
    const lasts = new Map(settlements.map((each) => [consumerOf(each.token), each]));
    const answered = new Set(lasts.values());
    const sending = wire.send(
      settlements.filter((each) => !answered.has(each)).map((each) => outgoing(each)),
    );
    const [answers] = await Promise.all([
      wire.exchange([...answered].map((each) => outgoing(each))),
      sending,
    ]);
    return new Set([...lasts.keys()].filter((_, at) => isGone(answers[at])));
  }
}

function isGone(answer: Msg | undefined): boolean {
  return answer !== undefined && isUnanswered(answer);
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
