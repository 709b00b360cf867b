// Random histories of stream mode beside a model: relays that send, fail, forget what they had, lose their
// lanes and go on regardless. Nothing is lost, nothing that was settled is given out again, and the first
// deliveries of a key are in order.

import assert from 'node:assert/strict';
import { systemClock } from '../foundation/clock.ts';
import { seededRandom, type SeededRandom } from '../testing/seeded-random.ts';
import { decideBatch, sendable } from './decide-batch.ts';
import type { DeliveryResult } from './decide-delivery.ts';
import { eventually, newMessage, type LedgerCases } from './ledger-fixture.conformance.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { LaneBatch, LaneClaim, LaneMessage } from './outbox-streams.ts';
import { bytesMax, counted, type } from './streams-fixture.conformance.ts';

interface Modelled {
  readonly number: number;
  readonly key: string | undefined;
  state: 'open' | 'sent' | 'dead';
  /** For good: whoever sends it gets the same answer, until an operator has mended that and replays it. */
  isRefused: boolean;
  /** It was refused, or has died: it has lost its place in the order. */
  isOutOfOrder: boolean;
}

interface ModelRelay {
  name: string;
  lanes: readonly LaneClaim[];
  batches: LaneBatch[];
}

const steps = 150;
const lanes = 3;
/** Some failures are due at once, others after a part of the history. */
const waitsMs = [0, 0, 20, 60];

function createRun(ledger: OutboxLedger, random: SeededRandom) {
  const known = new Map<string, Modelled>();
  const deliveries: string[] = [];
  const owners = new Map<number, number>();
  let names = 0;
  const newRelay = (): ModelRelay => ({ name: `relay-${(names += 1)}`, lanes: [], batches: [] });
  const relays = [newRelay(), newRelay(), newRelay()];

  async function enqueue(): Promise<void> {
    const items = Array.from({ length: 1 + random.below(8) }, () => {
      const orderingKey = random.below(4) === 0 ? undefined : `k${random.below(6)}`;
      return newMessage({
        integrationType: type,
        tenantId: `t${random.below(3)}`,
        maxAttempts: 1 + random.below(4),
        ...(orderingKey === undefined ? {} : { orderingKey }),
      });
    });
    for (const [at, { id }] of (await ledger.enqueueMany(items)).entries()) {
      const key = items[at]?.orderingKey;
      const isRefused = random.below(10) === 0;
      known.set(id, { number: known.size, key, isRefused, state: 'open', isOutOfOrder: false });
    }
  }

  async function acquire(relay: ModelRelay): Promise<void> {
    const busy = new Set(relay.batches.map(({ claim }) => claim.lane));
    const giveBack = relay.lanes.filter(({ lane }) => !busy.has(lane) && random.below(4) === 0);
    // Short leases: whoever comes next may take the lanes over, whatever this one is doing.
    const request = { workerId: relay.name, integrationTypes: [type], leaseMs: 1, giveBack };
    relay.lanes = await ledger.streams.acquire(request);
    for (const { lane, epoch } of relay.lanes) {
      assert.ok((owners.get(lane) ?? 0) <= epoch, 'an epoch went back');
      owners.set(lane, epoch);
    }
  }

  const isOwner = ({ lane, epoch }: LaneClaim): boolean => owners.get(lane) === epoch;

  async function fetch(relay: ModelRelay, limit: number): Promise<void> {
    const busy = new Set(relay.batches.map(({ claim }) => claim.lane));
    const free = relay.lanes.filter(({ lane }) => !busy.has(lane));
    const asked = free.map((claim) => ({ claim, limit }));
    const answer = await ledger.streams.exchange([], { lanes: asked, bytesMax, leaseMs: 1 });
    for (const batch of answer.batches) {
      assert.ok(isOwner(batch.claim), 'given out under an epoch that is over');
      assert.ok(batch.items.length <= limit);
      for (const { message } of batch.items) {
        const model = known.get(message.id) ?? assert.fail('it was never enqueued');
        assert.equal(model.state, 'open', `message ${model.number} was settled before`);
      }
      relay.batches.push(batch);
    }
  }

  function deliver(
    items: readonly LaneMessage[],
    isHealed: boolean,
  ): Map<LaneMessage, DeliveryResult> {
    const results = new Map<LaneMessage, DeliveryResult>();
    const stuck = new Set<string>();
    const isDown = !isHealed && random.below(6) === 0;
    for (const item of items) {
      const { id, orderingKey } = item.message;
      const model = known.get(id) ?? assert.fail();
      const isBehind = orderingKey !== undefined && stuck.has(orderingKey);
      const kind = isHealed ? 0 : random.below(8);
      if (isDown || isBehind || kind === 1) {
        results.set(item, { kind: 'retry', error: 'no', attempted: !isBehind });
        if (orderingKey !== undefined) stuck.add(orderingKey);
      } else if (model.isRefused) {
        results.set(item, { kind: 'dead', error: 'no' });
        // Whoever hears of it goes on to the next, also one who is killed before he writes it down.
        model.isOutOfOrder = true;
      } else {
        deliveries.push(id);
        // Sometimes nobody hears that it arrived.
        const isHeard = isHealed || random.below(8) > 0;
        results.set(item, isHeard ? { kind: 'sent' } : { kind: 'retry', error: 'unheard' });
        if (!isHeard && orderingKey !== undefined) stuck.add(orderingKey);
      }
    }
    return results;
  }

  async function finish(relay: ModelRelay, isHealed: boolean): Promise<void> {
    const batch = relay.batches.shift();
    if (batch === undefined) return;
    const results = deliver(sendable(batch.items), isHealed);
    const capMs = random.pick(waitsMs);
    const schedule = { initialMs: capMs, factor: 1, capMs, jitterMs: 0 };
    const context = { nowMs: systemClock.now(), failures: 0, schedule, random: 0 };
    const { outcome } = decideBatch(batch, results, context);
    const { settled } = await ledger.streams.exchange([outcome]);
    assert.deepEqual(settled, [isOwner(batch.claim) ? 'settled' : 'stale']);
    if (settled[0] === 'stale') return;
    const changed = new Map(outcome.changes.map((change) => [change.position, change.kind]));
    for (const { message, position, isParked } of batch.items) {
      const model = known.get(message.id) ?? assert.fail();
      const kind =
        changed.get(position) ?? (outcome.upTo === undefined || isParked ? 'waits' : 'sent');
      if (kind === 'sent') model.state = 'sent';
      if (kind === 'dead') Object.assign(model, { state: 'dead', isOutOfOrder: true });
    }
  }

  async function replay(): Promise<void> {
    const dead = [...known.values()].filter(({ state }) => state === 'dead');
    assert.equal(await ledger.replay({}), dead.length);
    for (const model of dead) Object.assign(model, { state: 'open', isRefused: false });
  }

  async function step(): Promise<void> {
    const relay = random.pick(relays);
    const kind = random.below(20);
    if (kind < 4) await enqueue();
    else if (kind < 8) await acquire(relay);
    else if (kind < 12) await fetch(relay, 1 + random.below(10));
    else if (kind < 18) await finish(relay, false);
    else if (kind === 18) {
      // Killed: another one comes in its place and knows nothing.
      relays[relays.indexOf(relay)] = newRelay();
    } else await replay();
  }

  async function compare(): Promise<void> {
    const { SENT, DEAD, PENDING, FAILED, CLAIMED } = await ledger.counts();
    const count = (wanted: string): number =>
      [...known.values()].filter(({ state }) => state === wanted).length;
    assert.deepEqual(
      { SENT, DEAD, open: PENDING + FAILED + CLAIMED },
      { SENT: count('sent'), DEAD: count('dead'), open: count('open') },
    );
  }

  async function drain(): Promise<void> {
    for (const model of known.values()) model.isRefused = false;
    await replay();
    const last = newRelay();
    relays.splice(0, relays.length, last);
    // Shares count those who were killed until their time is over; then all lanes are free.
    while (last.lanes.length < lanes) await acquire(last);
    await eventually('everything is sent', async () => {
      await fetch(last, 20);
      while (last.batches.length > 0) await finish(last, true);
      return (await ledger.counts()).SENT === known.size;
    });
    await compare();
    assert.deepEqual(await ledger.counts(), counted({ SENT: known.size }));
    const first = new Set(deliveries);
    assert.equal(first.size, known.size, 'not every message arrived');
    const reached = new Map<string, number>();
    for (const id of first) {
      const { key, number, isOutOfOrder } = known.get(id) ?? assert.fail();
      if (key === undefined || isOutOfOrder) continue;
      assert.ok((reached.get(key) ?? -1) < number, `message ${number} of ${key} came late`);
      reached.set(key, number);
    }
  }

  return { step, compare, drain };
}

const seeds = [1, 2, 3, 4, 5, 6];

export const streamModelCases: LedgerCases = Object.fromEntries(
  seeds.map((seed) => [
    `a random history of relays loses nothing and keeps the order of each key (seed ${seed})`,
    async (_opened: unknown, ledger: OutboxLedger): Promise<void> => {
      await ledger.streams.declare(type, { lanes });
      const run = createRun(ledger, seededRandom(seed));
      for (let at = 0; at < steps; at += 1) {
        await run.step();
        if (at % 15 === 0) await run.compare();
      }
      await run.drain();
    },
  ]),
);
