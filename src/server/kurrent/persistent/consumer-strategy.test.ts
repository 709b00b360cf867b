import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  bucketsCount,
  createStrategy,
  rebalance,
  type Candidate,
  type StrategyName,
} from './consumer-strategy.ts';

function choices(
  name: StrategyName,
  rooms: Readonly<Record<string, number>>,
  pins: readonly { stream: string; correlation?: string }[],
): string[] {
  const strategy = createStrategy(name);
  const candidates = new Map<string, Candidate & { room: number }>();
  for (const [id, room] of Object.entries(rooms)) {
    candidates.set(id, { id, room });
    strategy.add(id);
  }
  return pins.map(({ stream, correlation }) => {
    const choice = strategy.choose(candidates, { stream, correlation });
    if (choice.kind !== 'consumer') return choice.kind;
    const chosen = candidates.get(choice.id);
    if (chosen !== undefined) chosen.room -= 1;
    return choice.id;
  });
}

const same = (count: number) => Array.from({ length: count }, () => ({ stream: 's' }));

test('round robin takes turns and skips full consumers', () => {
  assert.deepEqual(choices('RoundRobin', { a: 3, b: 1, c: 2 }, same(7)), [
    'a',
    'b',
    'c',
    'a',
    'c',
    'a',
    'full',
  ]);
});

test('dispatch to single sends to one consumer until it is full', () => {
  assert.deepEqual(choices('DispatchToSingle', { a: 2, b: 1 }, same(4)), ['a', 'a', 'b', 'full']);
});

test('a pinned stream stays with its consumer, and waits while it is full', () => {
  const [first, second] = choices('Pinned', { a: 1, b: 1 }, same(2));
  assert.ok(first === 'a' || first === 'b');
  assert.equal(second, 'busy');
});

test('messages of one correlation stay together, whatever their streams', () => {
  const pins = Array.from({ length: 10 }, (_, index) => ({
    stream: `s-${index}`,
    correlation: 'flow-1',
  }));
  assert.equal(new Set(choices('PinnedByCorrelation', { a: 99, b: 99, c: 99 }, pins)).size, 1);
  const streams = Array.from({ length: 50 }, (_, index) => ({ stream: `s-${index}` }));
  assert.equal(new Set(choices('PinnedByCorrelation', { a: 99, b: 99, c: 99 }, streams)).size, 3);
});

test('without consumers nothing is chosen', () => {
  for (const name of ['RoundRobin', 'DispatchToSingle', 'Pinned'] as const) {
    assert.deepEqual(choices(name, {}, same(1)), ['full']);
  }
});

test('buckets are even after every change of consumers, and as few as possible move', () => {
  const steps = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 20 });
  fc.assert(
    fc.property(steps, (toggles) => {
      const buckets: (string | undefined)[] = Array.from({ length: bucketsCount });
      const consumers: string[] = [];
      for (const id of toggles) {
        const at = consumers.indexOf(id);
        if (at === -1) consumers.push(id);
        else consumers.splice(at, 1);
        const before = [...buckets];
        rebalance(buckets, consumers);
        if (consumers.length === 0) {
          assert.ok(buckets.every((bucket) => bucket === undefined));
          continue;
        }
        const shares = consumers.map((each) => buckets.filter((owner) => owner === each).length);
        assert.ok(Math.max(...shares) - Math.min(...shares) <= consumers.length);
        assert.equal(
          shares.reduce((sum, share) => sum + share, 0),
          bucketsCount,
        );
        // When a consumer leaves, no bucket moves between the remaining ones.
        if (at !== -1) {
          const moved = before.filter((owner, index) => owner !== id && owner !== buckets[index]);
          assert.ok(moved.length === 0);
        }
      }
    }),
    { numRuns: 50 },
  );
});
