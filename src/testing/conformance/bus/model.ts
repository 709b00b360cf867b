// Random work against invariants: no message is lost, the order is kept, and no message has two members during a lease.

import assert from 'node:assert/strict';
import { eventually } from '../../assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { seededRandom, type SeededRandom } from '../../seeded-random.ts';
import type { Bus, BusGroup } from '../../../bus/bus.ts';
import type { Delivery } from '../../../bus/bus-message.ts';
import { numbersOf, upTo, type BusCases } from './fixture.ts';

const leaseMs = 60;
const subjectsCount = 3;

interface Step {
  readonly kind: 'ack' | 'crash' | 'fetch' | 'nack' | 'publish' | 'term';
  readonly at: number;
  readonly n: number;
}

/** Relative frequencies; after `crash`, leases expire. */
const weights = { publish: 3, fetch: 4, ack: 4, nack: 2, term: 1, crash: 1 } as const;
const kinds = Object.entries(weights).flatMap(([kind, weight]) =>
  Array.from({ length: weight }, () => kind as Step['kind']),
);
const most = { publish: 3, fetch: 4, ack: 0, nack: 30, term: 0, crash: 0 } as const;

function randomSteps(random: SeededRandom): readonly Step[] {
  return Array.from({ length: 20 + random.below(31) }, () => {
    const kind = random.pick(kinds);
    const isSettlement = kind === 'ack' || kind === 'nack' || kind === 'term';
    return {
      kind,
      at: random.below(isSettlement ? 10 : subjectsCount),
      n: random.below(most[kind] + 1),
    };
  });
}

let runs = 0;

interface LeasedDelivery {
  readonly delivery: Delivery;
  readonly member: number;
}

/** One run of the property, on separate subjects and a separate group. */
async function play(
  bus: Bus,
  work: readonly Step[],
  { maxAckPending, isFenced }: { readonly maxAckPending: number; readonly isFenced: boolean },
): Promise<void> {
  runs += 1;
  const domain = `gbe.model.r${runs}`;
  const group = `model-${runs}`;
  const definition = {
    group,
    subject: `${domain}.*`,
    leaseMs,
    maxDeliveries: 1_000,
    maxAckPending,
  };
  const members = await Promise.all(upTo(3).map(() => bus.group(definition)));
  const published = upTo(subjectsCount).map(() => 0);
  const firsts = upTo(subjectsCount).map((): number[] => []);
  const done = new Map<string, string>();
  const safeUntilMs = new Map<string, number>();
  let leased: LeasedDelivery[] = [];

  const subjectAt = (subject: string): number => Number(subject.at(-1));
  const keyOf = (delivery: Delivery): string => `${delivery.subject} ${numbersOf([delivery])[0]}`;

  async function fetch(member: number, limit: number, waitMs = 0): Promise<number> {
    const fetchedMs = systemClock.now();
    const deliveries = await (members[member] as BusGroup).fetch({ limit, waitMs });
    const arrivedMs = systemClock.now();
    for (const delivery of deliveries) {
      const key = keyOf(delivery);
      // The lease starts with the fetch at the earliest; an engine may round by a millisecond.
      const safeMs = safeUntilMs.get(key) ?? 0;
      assert.ok(arrivedMs >= safeMs - 2, `${key} arrived while its lease was valid`);
      if (isFenced) assert.ok(!done.has(key), `${key} arrived again after ${done.get(key)}`);
      safeUntilMs.set(key, fetchedMs + leaseMs);
      const [n = -1] = numbersOf([delivery]);
      const seen = firsts[subjectAt(delivery.subject)];
      if (seen !== undefined && !seen.includes(n)) {
        assert.equal(n, seen.length, `${key} overtook a message that never arrived`);
        seen.push(n);
      }
    }
    leased.push(...deliveries.map((delivery) => ({ delivery, member })));
    return deliveries.length;
  }

  async function settle(one: LeasedDelivery, kind: string, delayMs: number): Promise<void> {
    leased = leased.filter((each) => each !== one);
    const key = keyOf(one.delivery);
    const settling = {
      ack: () => one.delivery.ack(),
      term: () => one.delivery.term('model'),
      nack: () => one.delivery.nack({ delayMs }),
    }[kind];
    const outcome = await settling?.();
    if (outcome !== 'settled') return;
    safeUntilMs.delete(key);
    if (kind === 'nack') return;
    assert.ok(!isFenced || !done.has(key), `${key} was settled twice`);
    done.set(key, kind);
  }

  for (const { kind, at, n } of work) {
    if (kind === 'publish') {
      const from = published[at] ?? 0;
      const batch = upTo(n + 1).map((more) => ({
        subject: `${domain}.s${at}`,
        payload: { n: from + more },
      }));
      published[at] = from + batch.length;
      await bus.publishMany(batch);
    } else if (kind === 'fetch') {
      await fetch(at, n + 1);
    } else if (kind === 'crash') {
      leased = leased.filter(({ member }) => member !== at);
    } else {
      const one = leased[at % Math.max(1, leased.length)];
      if (one !== undefined) await settle(one, kind, n);
    }
  }

  // Without further failures, the group must drain.
  const total = published.reduce((sum, each) => sum + each, 0);
  await eventually(`all ${total} are settled`, async () => {
    for (const one of leased) await settle(one, 'ack', 0);
    await fetch(0, 100, 50);
    return done.size === total && leased.length === 0;
  });
  assert.deepEqual(
    firsts.map((seen) => seen.length),
    published,
  );
  const letters = await bus.deadLetters(group, { limit: 1_000 });
  const dead = [...done.values()].filter((kind) => kind === 'term').length;
  assert.ok(isFenced ? letters.length === dead : letters.length >= dead, 'letters');
}

/** Two cases, because each seed waits for leases to expire: a short run takes only the first. */
const seeds = { '': [0, 1, 2, 3], ' (more seeds)': [4, 5, 6, 7, 8, 9, 10, 11] } as const;

async function property(
  bus: Bus,
  run: {
    readonly seeds: readonly number[];
    readonly maxAckPending: number;
    readonly isFenced: boolean;
  },
): Promise<void> {
  const { maxAckPending, isFenced } = run;
  for (const seed of run.seeds) {
    const work = randomSteps(seededRandom(seed));
    await play(bus, work, { maxAckPending, isFenced }).catch((cause: unknown) => {
      throw new Error(`seed ${seed}: ${JSON.stringify(work)}`, { cause });
    });
  }
}

const properties = {
  'members that randomly ack, nack, terminate and crash lose no message and never share one': 1_000,
  'with one message at a time the same holds in strict order': 1,
} as const;

export const modelCases: BusCases = Object.fromEntries(
  Object.entries(properties).flatMap(([name, maxAckPending]) =>
    Object.entries(seeds).map(([part, own]) => [
      `${name}${part}`,
      (bus, { capabilities }) =>
        property(bus, { seeds: own, maxAckPending, isFenced: capabilities.fencedAcks }),
    ]),
  ),
);
