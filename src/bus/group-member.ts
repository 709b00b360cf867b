// A member of a group: fetches, puts aside what cannot be handled, and settles in batches.

import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type {
  BusEngine,
  EngineEntry,
  FetchRequest,
  GroupSettings,
  LeasedEntry,
  Settlement,
} from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { Delivery, SettleOutcome } from './bus-message.ts';
import { invalid, wholeNumber } from './check-bus.ts';
import {
  deadLetterSubject,
  redoSubject,
  type DeadLetterCause,
  type DeadLetterMeta,
} from './dead-letter.ts';
import type { MessageCodec } from './message-codec.ts';
import { createSettler } from './settler.ts';

export interface MemberContext {
  readonly engine: BusEngine;
  readonly codec: MessageCodec;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly reply: (to: Delivery, payload: unknown) => Promise<void>;
}

/** A delivery with what the loop around it needs. */
export interface HeldDelivery {
  readonly delivery: Delivery;
  readonly isSettled: () => boolean;
  extend(): Promise<SettleOutcome>;
  release(): Promise<SettleOutcome>;
}

export interface GroupMember {
  readonly settings: GroupSettings;
  /** Makes the group where it is missing, from this start. */
  ensure(start?: GroupSettings['start']): Promise<void>;
  fetch(request: FetchRequest): Promise<readonly HeldDelivery[]>;
}

export function createGroupMember(
  context: MemberContext,
  settings: GroupSettings,
  maxDeliveries: number,
): GroupMember {
  const { engine, codec, clock, observer } = context;
  const { name: group } = settings;
  const settler = createSettler((settlements) => engine.settle(settings, settlements));

  function letterOf(entry: LeasedEntry, cause: DeadLetterCause, reason: string): EngineEntry {
    const before = previousOf(entry, group);
    const origin = before ?? entry;
    const meta: DeadLetterMeta = {
      group,
      cause,
      reason: reason.slice(0, limits.reasonCharsMax),
      subject: origin.subject,
      sequence: origin.sequence,
      storedAtMs: origin.storedAtMs,
      attempts: (before?.attempts ?? 0) + entry.deliveryCount,
      diedAtMs: clock.now(),
    };
    observer.count?.('bus_dead_letters_total', { group, cause });
    observer.log?.warn(
      { group, subject: meta.subject, sequence: meta.sequence, cause, reason },
      'message dead-lettered',
    );
    // The id repeats when a crash comes between the letter and the ack: one letter all the same.
    const id = `${group}:${entry.subject}:${entry.sequence}`;
    return { subject: deadLetterSubject(group), id, data: entry.data, meta: asciiJson(meta) };
  }

  /** What is wrong with it, or that nobody waits for it any more. */
  function judge(entry: LeasedEntry): HeldDelivery | Settlement {
    const { token } = entry;
    // Whoever reads all dead letters would go round with its own for ever.
    if (entry.subject === deadLetterSubject(group)) return { kind: 'ack', token };
    const decoded = codec.decode(entry);
    if (decoded.kind === 'bad') {
      return { kind: 'dead', token, letter: letterOf(entry, decoded.cause, decoded.reason) };
    }
    if (entry.deliveryCount > maxDeliveries) {
      const reason = `handed out ${maxDeliveries} times, and never settled`;
      const counted = { ...entry, deliveryCount: entry.deliveryCount - 1 };
      return { kind: 'dead', token, letter: letterOf(counted, 'max-deliveries', reason) };
    }
    if (decoded.expiresAtMs < clock.now()) return { kind: 'ack', token };
    return hold(entry, decoded.message);
  }

  function hold(entry: LeasedEntry, message: Omit<Delivery, keyof Settling>): HeldDelivery {
    const { token, deliveryCount } = entry;
    let state: 'held' | 'settling' | 'settled' = 'held';

    async function settle(settlement: Settlement): Promise<SettleOutcome> {
      if (state !== 'held') return 'stale';
      state = 'settling';
      try {
        const outcome = await settler.settle(settlement);
        state = 'settled';
        return outcome;
      } finally {
        // The broker did not answer: whoever tries again may.
        if (state === 'settling') state = 'held';
      }
    }

    const die = (cause: DeadLetterCause, reason: string): Promise<SettleOutcome> =>
      settle({ kind: 'dead', token, letter: letterOf(entry, cause, reason) });
    const extend = async (): Promise<SettleOutcome> =>
      state === 'held' ? settler.settle({ kind: 'extend', token }) : 'stale';

    const delivery: Delivery = {
      ...message,
      group,
      deliveryCount,
      ack: () => settle({ kind: 'ack', token }),
      async nack({ delayMs = 0, reason = 'nacked' } = {}) {
        wholeNumber('delayMs', delayMs, { min: 0, max: limits.delayMsMax });
        if (deliveryCount >= maxDeliveries) return die('max-deliveries', reason);
        return settle({ kind: 'nack', token, delayMs });
      },
      inProgress: extend,
      async term(reason) {
        if (typeof reason !== 'string' || reason === '') throw invalid('reason', 'must be a text');
        return die('terminated', reason);
      },
      reply: (payload) => context.reply(delivery, payload),
    };
    return {
      delivery,
      isSettled: () => state !== 'held',
      extend,
      release: () => settle({ kind: 'release', token }),
    };
  }

  return {
    settings,
    ensure: (start = settings.start) => engine.ensureGroup({ ...settings, start }),
    async fetch({ limit, waitMs, signal }) {
      const deadlineMs = clock.now() + waitMs;
      for (let leftMs = waitMs; ; leftMs = Math.max(0, deadlineMs - clock.now())) {
        const entries = await engine.fetch(settings, { limit, waitMs: leftMs, signal });
        const judged = entries.map(judge);
        const held = judged.filter((each): each is HeldDelivery => 'delivery' in each);
        await putAside(judged.filter((each): each is Settlement => !('delivery' in each)));
        if (held.length > 0 || entries.length === 0) return held;
      }
    },
  };

  async function putAside(settlements: readonly Settlement[]): Promise<void> {
    try {
      await Promise.all(settlements.map((each) => settler.settle(each)));
    } catch (err) {
      // They come again when their lease is over; the good ones beside them must not wait for that.
      if (!hasCode(err, 'BUS_UNAVAILABLE')) throw err;
      observer.log?.warn({ group, err }, 'bad messages could not be put aside yet');
    }
  }
}

/** The methods of a delivery, and what only its group knows. */
type Settling = Pick<
  Delivery,
  'ack' | 'nack' | 'inProgress' | 'term' | 'reply' | 'group' | 'deliveryCount'
>;

/** A replayed letter keeps where it came from, and counts on. */
function previousOf(entry: LeasedEntry, group: string): DeadLetterMeta | undefined {
  if (entry.subject !== redoSubject(group) || entry.meta === undefined) return undefined;
  return JSON.parse(entry.meta) as DeadLetterMeta;
}

/** Every engine keeps ASCII as it is, a NATS header among them. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
