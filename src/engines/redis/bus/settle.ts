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
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { forEachGroup } from '../connection/engine.ts';
import type { ScriptValue } from '../connection/script.ts';
import { asBuffer, batchMax } from './append.ts';
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

export function createBusSettle(
  { redis, keyspace }: RedisBusContext,
  append: (entries: readonly EngineEntry[], windowMs: number) => Promise<readonly Appended[]>,
  /** Reports the number of pending messages of the domain. */
  onPending: (group: string, domain: string, pending: number) => void,
): BusEngine['settle'] {
  /** All tokens have the same domain and native group. */
  async function run(
    { name, leaseMs }: GroupSettings,
    batch: readonly Settlement[],
  ): Promise<readonly SettleOutcome[]> {
    const { native, streamKey } = tokenOf(batch[0]?.token ?? '');
    const domain = keyspace.domainOf(streamKey);
    const registry = keyspace.isOneDomain ? keyspace.registry : '';
    const [pending, flags] = (await redis.runForBytes(
      busScripts.settle,
      keyspace.leases(domain, native),
      [native, keyspace.channel, name, leaseMs, registry, ...batch.flatMap(valuesOf)],
    )) as readonly [number, readonly number[]];
    onPending(name, domain, pending);
    return batch.map((_, at) => (flags[at] === 1 ? 'settled' : 'stale'));
  }

  function valuesOf(settlement: Settlement): ScriptValue[] {
    const { kind } = settlement;
    const { streamKey, id: entryId, fence } = tokenOf(settlement.token);
    const values = [kind, streamKey, entryId, fence, kind === 'nack' ? settlement.delayMs : 0];
    if (kind !== 'dead') return values;
    const { subject, id, data, meta = '' } = settlement.letter;
    const key = keyspace.streamKey(subject);
    return [...values, key, keyspace.mark(key), subject, letterWindowMs, id, asBuffer(data), meta];
  }

  /**
   * Used if the dead letter is in another slot: extends the lease to check that it is still valid, stores the letter,
   * then acks. The id of the letter prevents duplicates.
   */
  async function deadLetter(
    group: GroupSettings,
    { token, letter }: Extract<Settlement, { kind: 'dead' }>,
  ): Promise<readonly SettleOutcome[]> {
    const [extended] = await run(group, [{ kind: 'extend', token }]);
    if (extended !== 'settled') return ['stale'];
    await append([letter], letterWindowMs);
    return run(group, [{ kind: 'ack', token }]);
  }

  return (group, settlements) =>
    forEachGroup(
      settlements,
      ({ token }) => {
        const { streamKey, native } = tokenOf(token);
        return `${keyspace.domainOf(streamKey)} ${native}`;
      },
      async (own) => {
        const outcomes: SettleOutcome[] = [];
        let batched: Settlement[] = [];
        const flush = async (): Promise<void> => {
          const sizeOf = (each: Settlement): number =>
            each.kind === 'dead' ? each.letter.data.length : 0;
          for (const batch of batchesOf(batched, { ...batchMax, sizeOf })) {
            outcomes.push(...(await run(group, batch)));
          }
          batched = [];
        };
        for (const settlement of own) {
          if (settlement.kind === 'dead' && !keyspace.isOneDomain) {
            await flush();
            outcomes.push(...(await deadLetter(group, settlement)));
          } else batched.push(settlement);
        }
        await flush();
        return outcomes;
      },
    );
}
