// Settles what was handed out: one script for each domain and portion, in the given order.

import type {
  Appended,
  BusEngine,
  EngineEntry,
  GroupSettings,
  Settlement,
} from '../../bus/bus-engine.ts';
import { busLimits } from '../../bus/bus-limits.ts';
import type { SettleOutcome } from '../../bus/bus-message.ts';
import { asBuffer, portionsOf } from './redis-bus-append.ts';
import type { ScriptValue } from './redis-bus-calls.ts';
import type { RedisBusContext } from './redis-bus-context.ts';
import { busScripts } from './redis-bus-scripts.ts';

/** How long a letter that was stored and not acked yet is known: its message may come again by then. */
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
  { calls, space }: RedisBusContext,
  append: (entries: readonly EngineEntry[], windowMs: number) => Promise<readonly Appended[]>,
  /** How many of the domain are out now. */
  onPending: (group: string, domain: string, pending: number) => void,
): BusEngine['settle'] {
  async function run(
    { name, leaseMs }: GroupSettings,
    domain: string,
    portion: readonly Placed[],
  ): Promise<SettleOutcome[]> {
    const native = portion[0]?.token.native ?? name;
    const registry = space.isOneDomain ? space.registry : '';
    const [pending, answers] = (await calls.run(busScripts.settle, space.leases(domain, native), [
      native,
      space.channel,
      name,
      leaseMs,
      registry,
      ...portion.flatMap(valuesOf),
    ])) as readonly [number, readonly number[]];
    onPending(name, domain, pending);
    return portion.map((_, at) => (answers[at] === 1 ? 'settled' : 'stale'));
  }

  function valuesOf({ settlement, token }: Placed): ScriptValue[] {
    const { kind } = settlement;
    const delayMs = kind === 'nack' ? settlement.delayMs : 0;
    const values = [kind, token.streamKey, token.id, token.fence, delayMs];
    if (kind !== 'dead') return values;
    const { subject, id, data, meta = '' } = settlement.letter;
    const key = space.streamKey(subject);
    return [...values, key, space.mark(key), subject, letterWindowMs, id, asBuffer(data), meta];
  }

  /** In another slot: held still? then the letter, then the ack; its id keeps it from being stored twice. */
  async function deadLetter(
    group: GroupSettings,
    domain: string,
    placed: Placed & { readonly settlement: { readonly kind: 'dead' } },
  ): Promise<SettleOutcome> {
    const { token: text, letter } = placed.settlement;
    const as = (kind: 'extend' | 'ack') =>
      run(group, domain, [{ ...placed, settlement: { kind, token: text } }]);
    const [isHeld = 'stale'] = await as('extend');
    if (isHeld === 'stale') return 'stale';
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
    let together: Placed[] = [];
    const flush = async (): Promise<void> => {
      const bytesOf = ({ settlement: each }: Placed): number =>
        each.kind === 'dead' ? each.letter.data.length : 0;
      for (const portion of portionsOf(together, bytesOf)) {
        outcomes.push(...(await run(group, domain, portion)));
      }
      together = [];
    };
    for (const each of placed) {
      const { settlement } = each;
      if (settlement.kind === 'dead' && !space.isOneDomain) {
        await flush();
        outcomes.push(await deadLetter(group, domain, { ...each, settlement }));
      } else together.push(each);
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
      ({ token }) => `${space.domainOf(token.streamKey)} ${token.native}`,
    );
    const outcomes: SettleOutcome[] = Array.from({ length: all.length }, () => 'stale');
    await Promise.all(
      [...parts.values()].map(async (placed) => {
        const domain = space.domainOf(placed[0]?.token.streamKey ?? '');
        const settled = await settlePart(group, domain, placed);
        for (const [n, { at }] of placed.entries()) outcomes[at] = settled[n] ?? 'stale';
      }),
    );
    return outcomes;
  };
}
