// Settles leased messages in the given order, with one script call for each slot domain and batch.

import type {
  Appended,
  BusEngine,
  EngineEntry,
  GroupSettings,
  Settlement,
} from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import type { SettleOutcome } from '../../../bus/bus-message.ts';
import { asBuffer, batchesOf } from './append.ts';
import type { ScriptValue } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';

/** How long the id of a dead letter is remembered, in case its message is redelivered before the ack. */
const letterWindowMs = busLimits.dedupeWindowMsMax;

export interface LeaseToken {
  readonly native: string;
  readonly fence: string;
  readonly streamKey: string;
  readonly id: string;
}

export function tokenText({ native, fence, streamKey, id }: LeaseToken): string {
  return [native, fence, streamKey, id].join(' ');
}

function tokenOf(text: string): LeaseToken {
  const [native = '', fence = '', streamKey = '', id = ''] = text.split(' ');
  return { native, fence, streamKey, id };
}

interface Placed {
  readonly settlement: Settlement;
  readonly token: LeaseToken;
  readonly at: number;
}

export function createBusSettle(
  { calls, keyspace }: RedisBusContext,
  append: (entries: readonly EngineEntry[], windowMs: number) => Promise<readonly Appended[]>,
  /** Reports the number of pending messages of the domain. */
  onPending: (group: string, domain: string, pending: number) => void,
): BusEngine['settle'] {
  async function run(
    { name, leaseMs }: GroupSettings,
    domain: string,
    batch: readonly Placed[],
  ): Promise<SettleOutcome[]> {
    const native = batch[0]?.token.native ?? name;
    const registry = keyspace.isOneDomain ? keyspace.registry : '';
    const [pending, answers] = (await calls.run(
      busScripts.settle,
      keyspace.leases(domain, native),
      [native, keyspace.channel, name, leaseMs, registry, ...batch.flatMap(valuesOf)],
    )) as readonly [number, readonly number[]];
    onPending(name, domain, pending);
    return batch.map((_, at) => (answers[at] === 1 ? 'settled' : 'stale'));
  }

  function valuesOf({ settlement, token }: Placed): ScriptValue[] {
    const { kind } = settlement;
    const delayMs = kind === 'nack' ? settlement.delayMs : 0;
    const values = [kind, token.streamKey, token.id, token.fence, delayMs];
    if (kind !== 'dead') return values;
    const { subject, id, data, meta = '' } = settlement.letter;
    const key = keyspace.streamKey(subject);
    return [...values, key, keyspace.mark(key), subject, letterWindowMs, id, asBuffer(data), meta];
  }

  /**
   * The letter is in another slot: extend the lease to check that it is still valid, store the letter, then ack. The
   * id of the letter prevents duplicates.
   */
  async function deadLetter(
    group: GroupSettings,
    domain: string,
    placed: Placed & { readonly settlement: { readonly kind: 'dead' } },
  ): Promise<SettleOutcome> {
    const { token: text, letter } = placed.settlement;
    const as = (kind: 'extend' | 'ack') =>
      run(group, domain, [{ ...placed, settlement: { kind, token: text } }]);
    const [extended = 'stale'] = await as('extend');
    if (extended === 'stale') return 'stale';
    await append([letter], letterWindowMs);
    const [outcome = 'stale'] = await as('ack');
    return outcome;
  }

  async function settlePart(
    group: GroupSettings,
    domain: string,
    placed: readonly Placed[],
  ): Promise<SettleOutcome[]> {
    const outcomes: SettleOutcome[] = [];
    let batched: Placed[] = [];
    const flush = async (): Promise<void> => {
      const bytesOf = ({ settlement: each }: Placed): number =>
        each.kind === 'dead' ? each.letter.data.length : 0;
      for (const batch of batchesOf(batched, bytesOf)) {
        outcomes.push(...(await run(group, domain, batch)));
      }
      batched = [];
    };
    for (const each of placed) {
      const { settlement } = each;
      if (settlement.kind === 'dead' && !keyspace.isOneDomain) {
        await flush();
        outcomes.push(await deadLetter(group, domain, { ...each, settlement }));
      } else batched.push(each);
    }
    await flush();
    return outcomes;
  }

  return async (group, settlements) => {
    const all = settlements.map((settlement, at): Placed => ({
      settlement,
      token: tokenOf(settlement.token),
      at,
    }));
    const parts = Map.groupBy(
      all,
      ({ token }) => `${keyspace.domainOf(token.streamKey)} ${token.native}`,
    );
    const outcomes: SettleOutcome[] = Array.from({ length: all.length }, () => 'stale');
    await Promise.all(
      [...parts.values()].map(async (placed) => {
        const domain = keyspace.domainOf(placed[0]?.token.streamKey ?? '');
        const settled = await settlePart(group, domain, placed);
        for (const [n, { at }] of placed.entries()) outcomes[at] = settled[n] ?? 'stale';
      }),
    );
    return outcomes;
  };
}
