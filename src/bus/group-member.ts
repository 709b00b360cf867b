// A member of a group: fetches, dead-letters messages that cannot be handled, and settles in batches.

import { validatePattern } from '../contracts/subject-match.ts';
import { createBatcher } from '../foundation/async/batcher.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { parseStored } from '../foundation/parse-json.ts';
import type { Observer } from '../foundation/observer.ts';
import type { BusCapabilities, GroupDefinition } from './bus.ts';
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
import { checkGroupName, checkStart, invalid, checkInteger } from './check-bus.ts';
import {
  deadLetterSubject,
  redoSubject,
  type DeadLetterCause,
  type DeadLetterMeta,
} from './dead-letter.ts';
import type { MessageCodec } from './message-codec.ts';

const settleBatchMax = 1_000;

export interface MemberContext {
  readonly engine: BusEngine;
  readonly codec: MessageCodec;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly reply: (to: Delivery, payload: unknown) => Promise<void>;
}

/** A delivery and the operations of the consumer loop on it. */
export interface LeasedDelivery {
  readonly delivery: Delivery;
  /** The size of the stored message. */
  readonly bytes: number;
  readonly isSettled: () => boolean;
  extend(): Promise<SettleOutcome>;
  release(): Promise<SettleOutcome>;
}

export interface GroupMember {
  readonly settings: GroupSettings;
  /** Creates the group if it does not exist. */
  ensure(from?: GroupSettings['from']): Promise<void>;
  fetch(request: FetchRequest): Promise<readonly LeasedDelivery[]>;
}

export function toGroupSettings(
  definition: GroupDefinition,
  capabilities: BusCapabilities,
): GroupSettings {
  const { group, subject, from = 'start' } = definition;
  checkGroupName(group);
  validatePattern(subject);
  checkStart('from', from, { subject, capabilities });
  return {
    name: group,
    filters: [subject, redoSubject(group)],
    from,
    leaseMs: checkInteger('leaseMs', definition.leaseMs ?? limits.leaseMsDefault, {
      min: limits.leaseMsMin,
      max: limits.leaseMsMax,
    }),
    maxAckPending: checkInteger(
      'maxAckPending',
      definition.maxAckPending ?? limits.maxAckPendingDefault,
      { min: 1, max: limits.maxAckPendingMax },
    ),
  };
}

export function maxDeliveriesOf({ maxDeliveries }: GroupDefinition): number {
  return checkInteger('maxDeliveries', maxDeliveries ?? limits.maxDeliveriesDefault, {
    min: 1,
    max: limits.maxDeliveriesMax,
  });
}

export function createGroupMember(
  context: MemberContext,
  settings: GroupSettings,
  maxDeliveries: number,
): GroupMember {
  const { engine, codec, clock, observer } = context;
  const { name: group } = settings;
  const settler = createBatcher(
    (settlements: readonly Settlement[]) => engine.settle(settings, settlements),
    { batchMax: settleBatchMax },
  );

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
    // The id is derived, so a crash between the letter and the ack does not create a second letter.
    const id = `${group}:${entry.subject}:${entry.sequence}`;
    return { subject: deadLetterSubject(group), id, data: entry.data, meta: asciiJson(meta) };
  }

  /** A delivery for the handler, or the settlement of a message that no handler should get. */
  function classify(entry: LeasedEntry): LeasedDelivery | Settlement {
    const { token } = entry;
    // A group that reads all dead letters would otherwise process dead letters of itself in an endless loop.
    if (entry.subject === deadLetterSubject(group)) return { kind: 'ack', token };
    if (entry.unreadable !== undefined) {
      return { kind: 'dead', token, letter: letterOf(entry, 'malformed', entry.unreadable) };
    }
    const decoded = codec.decode(entry);
    if (decoded.kind === 'bad') {
      return { kind: 'dead', token, letter: letterOf(entry, decoded.cause, decoded.reason) };
    }
    if (entry.deliveryCount > maxDeliveries) {
      const reason = `delivered ${maxDeliveries} times without being settled`;
      const counted = { ...entry, deliveryCount: entry.deliveryCount - 1 };
      return { kind: 'dead', token, letter: letterOf(counted, 'max-deliveries', reason) };
    }
    if (decoded.expiresAtMs < clock.now()) return { kind: 'ack', token };
    return toLeasedDelivery(entry, decoded.message);
  }

  function toLeasedDelivery(
    entry: LeasedEntry,
    message: Omit<Delivery, keyof Settling>,
  ): LeasedDelivery {
    const { token, deliveryCount } = entry;
    let state: 'leased' | 'settling' | 'settled' = 'leased';

    async function settle(settlement: Settlement): Promise<SettleOutcome> {
      if (state !== 'leased') return 'stale';
      state = 'settling';
      try {
        const outcome = await settler.add(settlement);
        state = 'settled';
        return outcome;
      } finally {
        // The broker did not respond, so another attempt is allowed.
        if (state === 'settling') state = 'leased';
      }
    }

    const deadLetter = (cause: DeadLetterCause, reason: string): Promise<SettleOutcome> =>
      settle({ kind: 'dead', token, letter: letterOf(entry, cause, reason) });
    const extend = async (): Promise<SettleOutcome> =>
      state === 'leased' ? settler.add({ kind: 'extend', token }) : 'stale';

    const delivery: Delivery = {
      ...message,
      group,
      deliveryCount,
      ack: () => settle({ kind: 'ack', token }),
      async nack({ delayMs = 0, reason = 'nacked' } = {}) {
        checkInteger('delayMs', delayMs, { min: 0, max: limits.delayMsMax });
        if (deliveryCount >= maxDeliveries) return deadLetter('max-deliveries', reason);
        return settle({ kind: 'nack', token, delayMs });
      },
      inProgress: extend,
      async term(reason) {
        if (typeof reason !== 'string' || reason === '')
          throw invalid('reason', 'must be a non-empty string');
        return deadLetter('terminated', reason);
      },
      reply: (payload) => context.reply(delivery, payload),
    };
    return {
      delivery,
      bytes: entry.data.length,
      isSettled: () => state !== 'leased',
      extend,
      release: () => settle({ kind: 'release', token }),
    };
  }

  return {
    settings,
    ensure: (from = settings.from) => engine.ensureGroup({ ...settings, from }),
    async fetch({ limit, waitMs, signal }) {
      const deadlineMs = clock.now() + waitMs;
      for (let leftMs = waitMs; ; leftMs = Math.max(0, deadlineMs - clock.now())) {
        const entries = await engine.fetch(settings, { limit, waitMs: leftMs, signal });
        const classified = entries.map(classify);
        const deliveries = classified.filter((each): each is LeasedDelivery => 'delivery' in each);
        await settleUndeliverable(
          classified.filter((each): each is Settlement => !('delivery' in each)),
        );
        if (deliveries.length > 0 || entries.length === 0) return deliveries;
      }
    },
  };

  async function settleUndeliverable(settlements: readonly Settlement[]): Promise<void> {
    try {
      await Promise.all(settlements.map((each) => settler.add(each)));
    } catch (err) {
      // These messages are delivered again after their lease; the other messages of this fetch must not wait.
      if (!hasCode(err, 'BUS_UNAVAILABLE')) throw err;
      observer.log?.warn({ group, err }, 'undeliverable messages not settled yet');
    }
  }
}

/** The fields of a delivery that the message itself does not have. */
type Settling = Pick<
  Delivery,
  'ack' | 'nack' | 'inProgress' | 'term' | 'reply' | 'group' | 'deliveryCount'
>;

/** A replayed letter keeps its origin and its attempts. */
function previousOf(entry: LeasedEntry, group: string): DeadLetterMeta | undefined {
  if (entry.subject !== redoSubject(group) || entry.meta === undefined) return undefined;
  return parseStored(entry.meta) as DeadLetterMeta | undefined;
}

/** ASCII only: a NATS header does not preserve other characters. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
