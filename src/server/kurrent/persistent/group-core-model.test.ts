import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { strategyNames } from './consumer-strategy.ts';
import { createGroupCore, type Effect } from './group-core.ts';
import { propertyRuns } from '../../../testing/property-runs.ts';

type Step =
  | { readonly kind: 'push'; readonly count: number }
  | { readonly kind: 'connect' | 'disconnect'; readonly who: number; readonly room: number }
  | { readonly kind: 'ack' | 'retry' | 'skip' | 'park' | 'stop'; readonly which: number }
  | { readonly kind: 'parked' | 'parkFailed' | 'replay'; readonly which: number }
  | { readonly kind: 'pass'; readonly ms: number };

const small = fc.nat({ max: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('push'), count: small }),
  fc.record({ kind: fc.constantFrom('connect', 'disconnect'), who: small, room: small }),
  fc.record({ kind: fc.constantFrom('ack', 'retry', 'skip', 'park', 'stop'), which: fc.nat() }),
  fc.record({ kind: fc.constantFrom('parked', 'parkFailed', 'replay'), which: fc.nat() }),
  fc.record({ kind: fc.constant('pass'), ms: fc.nat({ max: 150 }) }),
);

/** The model: messages of each consumer, messages being parked, and parked messages. */
function play(strategy: (typeof strategyNames)[number], steps: readonly Step[]): void {
  const core = createGroupCore<number>({
    after: -1,
    strategy,
    maxRetryCount: 2,
    messageTimeoutMs: 100,
    checkpointAfterMs: 50,
    minCheckpointCount: 1,
    maxCheckpointCount: 5,
    maxSubscriberCount: 0,
  });
  let now = 0;
  let pushed = 0;
  const rooms = new Map<string, number>();
  const consumerOf = new Map<string, string>();
  const parking: string[] = [];
  const parked: { id: string; at: number }[] = [];
  const done = new Set<number>();
  /** Replayed messages: they count only for the parked stream. */
  const replaying = new Map<string, number>();
  let parkedCount = 0;
  let checkpoint = -1;

  const message = (at: number) => ({
    id: `m${at}`,
    at,
    pin: { stream: `s${at % 3}`, correlation: undefined },
    target: { stream: 's', revision: at },
    content: at,
  });
  const numberOf = (id: string): number => Number(id.slice(1));
  const finish = (id: string): void => {
    if (replaying.delete(id)) return;
    done.add(numberOf(id));
  };
  const perform = (effect: Effect<number>): void => {
    if (effect.kind === 'send') {
      assert.ok(!consumerOf.has(effect.message.id), 'one message is with two consumers');
      assert.ok(rooms.has(effect.consumer), 'a message was sent to an unknown consumer');
      consumerOf.set(effect.message.id, effect.consumer);
    } else if (effect.kind === 'park') {
      consumerOf.delete(effect.message.id);
      parking.push(effect.message.id);
    } else if (effect.kind === 'checkpoint') {
      assert.ok(effect.at > checkpoint, 'a checkpoint went back');
      checkpoint = effect.at;
    }
  };
  const settle = (): void => {
    // A message that timed out has no consumer until it is sent again.
    for (const effect of core.effects(now)) {
      if (effect.kind === 'send') consumerOf.delete(effect.message.id);
      perform(effect);
    }
    const { inFlight, waiting, retrying, parking: beingParked, consumers } = core.stats();
    const open = pushed - done.size + replaying.size;
    assert.equal(inFlight + waiting + retrying + beingParked, open, 'a message vanished');
    for (const { id, inFlight: mine } of consumers) assert.ok(mine <= (rooms.get(id) ?? 0));
    for (let at = 0; at <= checkpoint; at += 1) assert.ok(done.has(at), 'passed over a message');
  };
  const pick = (which: number): string | undefined =>
    [...consumerOf.keys()][which % (consumerOf.size || 1)];

  const take = (next: Step): void => {
    switch (next.kind) {
      case 'push': {
        const from = pushed;
        pushed += next.count;
        core.push(Array.from({ length: next.count }, (_, index) => message(from + index)));
        return;
      }
      case 'connect': {
        const id = `c${next.who}`;
        if (rooms.has(id)) return;
        rooms.set(id, next.room + 1);
        core.connect(id, next.room + 1, now);
        return;
      }
      case 'disconnect': {
        const id = `c${next.who}`;
        rooms.delete(id);
        core.disconnect(id);
        for (const [each, consumer] of consumerOf) if (consumer === id) consumerOf.delete(each);
        return;
      }
      case 'ack':
      case 'skip': {
        const id = pick(next.which);
        if (id === undefined) return;
        const consumer = consumerOf.get(id) ?? '';
        if (next.kind === 'ack') core.ack(consumer, [id]);
        else core.nack(consumer, [id], 'skip', '');
        consumerOf.delete(id);
        finish(id);
        return;
      }
      case 'retry':
      case 'park':
      case 'stop': {
        const id = pick(next.which);
        if (id === undefined) return;
        core.nack(consumerOf.get(id) ?? '', [id], next.kind, '');
        if (next.kind !== 'stop') consumerOf.delete(id);
        return;
      }
      case 'parked':
      case 'parkFailed': {
        const [id] = parking.splice(next.which % (parking.length || 1), 1);
        if (id === undefined) return;
        if (next.kind === 'parkFailed') return core.parkFailed(id);
        parked.push({ id, at: parkedCount });
        parkedCount += 1;
        core.parked(id);
        finish(id);
        return;
      }
      case 'replay': {
        const first = parked[0];
        // Parked twice and being replayed: the next replay includes it.
        if (first === undefined || replaying.has(first.id)) return;
        parked.shift();
        replaying.set(first.id, first.at);
        core.replay([{ message: message(numberOf(first.id)), parkedAt: first.at }]);
        return;
      }
      case 'pass': {
        now += next.ms;
        const before = new Map(consumerOf);
        core.tick(now);
        const { consumers } = core.stats();
        // Messages that timed out have no consumer.
        const total = consumers.reduce((sum, { inFlight }) => sum + inFlight, 0);
        for (const id of [...before.keys()].slice(0, before.size - total)) consumerOf.delete(id);
      }
    }
  };

  for (const next of steps) {
    take(next);
    settle();
  }

  // Finally, one consumer acknowledges all remaining messages.
  for (const id of rooms.keys()) core.disconnect(id);
  rooms.clear();
  consumerOf.clear();
  rooms.set('last', 1_000);
  core.connect('last', 1_000, now);
  for (let rounds = 0; rounds < 10; rounds += 1) {
    for (const id of parking.splice(0)) {
      core.parked(id);
      finish(id);
    }
    settle();
    for (const id of consumerOf.keys()) {
      core.ack('last', [id]);
      finish(id);
    }
    consumerOf.clear();
  }
  settle();
  assert.equal(done.size, pushed);
  assert.equal(core.stats().checkpoint, pushed - 1);
}

test('for any behaviour of consumers no message is lost and no checkpoint skips one', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...strategyNames),
      fc.array(step, { maxLength: 60, size: 'max' }),
      play,
    ),
    { numRuns: propertyRuns(500) },
  );
});
