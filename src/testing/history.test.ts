import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assertNoViolations,
  checkDelivered,
  checkStored,
  parseHistory,
  type EventLocation,
  type HistoryEntry,
  type HistoryWrite,
  type Violation,
} from './history.ts';
import { seededRandom } from './seeded-random.ts';

const at = (
  eventId: string,
  stream: string,
  revision: number,
  position: number,
): EventLocation => ({
  eventId,
  stream,
  revision,
  position: String(position).padStart(4, '0'),
});

const invoke = (operation: string, ...writes: HistoryWrite[]): HistoryEntry => ({
  kind: 'invoke',
  operation,
  writes,
});
const to = (
  stream: string,
  eventIds: readonly string[],
  expected: HistoryWrite['expected'] = 'any',
): HistoryWrite => ({ stream, expected, eventIds });
const ok = (operation: string, ...locations: EventLocation[]): HistoryEntry => ({
  kind: 'ok',
  operation,
  results: locations.map(({ revision, position }) => ({ revision, position })),
});
const fail = (operation: string): HistoryEntry => ({
  kind: 'fail',
  operation,
  reason: 'VERSION_CONFLICT',
});

const rulesOf = (violations: readonly Violation[]): string[] => [
  ...new Set(violations.map(({ rule }) => rule)),
];

const a0 = at('a0', 'a', 0, 1);
const a1 = at('a1', 'a', 1, 2);
const b0 = at('b0', 'b', 0, 3);
const stored = [a0, a1, b0];
const history = [
  invoke('1', to('a', ['a0'], 'none')),
  ok('1', a0),
  invoke('2', to('a', ['a1'], 0), to('b', ['b0'])),
  ok('2', a1, b0),
];

test('a history that matches its store has no violations', () => {
  assert.deepEqual(checkStored(history, stored), []);
  assert.deepEqual(checkStored([], []), []);
});

test('an operation without a result may be stored completely or not at all', () => {
  const open = [...history.slice(0, 2), invoke('2', to('a', ['a1']), to('b', ['b0']))];
  assert.deepEqual(checkStored(open, stored), []);
  assert.deepEqual(checkStored(open, [a0]), []);
  assert.deepEqual(rulesOf(checkStored(open, [a0, a1])), ['torn']);
  assert.deepEqual(rulesOf(checkStored(open, [a0, b0])), ['torn']);
});

test('uses the last result of an operation', () => {
  const unknown: HistoryEntry = { kind: 'unknown', operation: '2', reason: 'STORE_UNAVAILABLE' };
  const tried = [...history.slice(0, 3), unknown];
  assert.deepEqual(checkStored(tried, [a0]), []);
  assert.deepEqual(rulesOf(checkStored([...tried, ok('2', a1, b0)], [a0])), ['lost']);
  assert.deepEqual(rulesOf(checkStored([...tried, fail('2')], stored)), ['rejected-but-stored']);
});

const broken: Readonly<
  Record<string, { readonly rule: string; readonly stored: readonly EventLocation[] }>
> = {
  'a lost acknowledged event': { rule: 'lost', stored: [a0, a1] },
  'an event without an operation': { rule: 'phantom', stored: [...stored, at('x', 'x', 0, 9)] },
  'an event that is stored twice': {
    rule: 'stored-twice',
    stored: [...stored, at('a1', 'a', 2, 9)],
  },
  'a gap in a stream': { rule: 'gap', stored: [a0, at('a1', 'a', 2, 2), b0] },
  'a stream that does not begin at 0': { rule: 'gap', stored: [a0, a1, at('b0', 'b', 1, 3)] },
  'descending positions': { rule: 'inversion', stored: [a0, at('a1', 'a', 1, 4), b0] },
  'two events at one position': { rule: 'inversion', stored: [a0, at('a1', 'a', 1, 1), b0] },
  'an event in another stream': { rule: 'misplaced', stored: [a0, a1, at('b0', 'c', 0, 3)] },
  'an event at another position than acknowledged': {
    rule: 'misplaced',
    stored: [a0, a1, at('b0', 'b', 0, 5)],
  },
};
for (const [what, { rule, stored: found }] of Object.entries(broken)) {
  test(`detects ${what}`, () => {
    assert.ok(rulesOf(checkStored(history, found)).includes(rule));
  });
}

test('detects an append at another revision than expected', () => {
  const late = [invoke('1', to('a', ['a0'])), invoke('2', to('a', ['a1'], 4)), ok('2', a1)];
  assert.deepEqual(rulesOf(checkStored(late, [a0, a1])), ['misplaced']);
});

test('detects an append interleaved with other events', () => {
  const split = [invoke('1', to('a', ['x', 'z'])), invoke('2', to('a', ['y']))];
  const locations = [at('x', 'a', 0, 1), at('y', 'a', 1, 2), at('z', 'a', 2, 3)];
  assert.deepEqual(rulesOf(checkStored(split, locations)), ['misplaced']);
});

test('rejects a history with a result without its invocation', () => {
  assert.throws(() => checkStored([fail('1')], []), /never invoked/);
});

test('reads a truncated file up to its last complete line', () => {
  const lines = history.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  assert.deepEqual(parseHistory(lines), history);
  assert.deepEqual(parseHistory(`${lines}{"kind":"ok","oper`), history);
  assert.deepEqual(parseHistory('{"kind'), []);
  assert.deepEqual(parseHistory(''), []);
});

test('a delivery equal to the stored events has no violations', () => {
  assert.deepEqual(checkDelivered(stored, stored), []);
});

test('detects every fault of a delivery', () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const random = seededRandom(seed);
    const events = Array.from({ length: 2 + random.below(30) }, (_, index) =>
      at(`e${index}`, `s${random.below(3)}`, index, index * (1 + random.below(3)) + 1),
    ).toSorted((one, other) => (one.position < other.position ? -1 : 1));
    const index = random.below(events.length - 1);
    const [one, other] = [events[index] as EventLocation, events[index + 1] as EventLocation];
    if (one.position === other.position) continue;
    const faults = {
      'not-delivered': events.toSpliced(index, 1),
      'delivered-twice': events.toSpliced(random.below(events.length), 0, one),
      'out-of-order': events.toSpliced(index, 2, other, one),
      phantom: events.toSpliced(index, 0, at('phantom', 's0', 99, 0)),
    };
    for (const [rule, delivered] of Object.entries(faults)) {
      const found = rulesOf(checkDelivered(events, delivered));
      assert.ok(found.includes(rule), `seed ${seed}: ${rule} was not found, but ${found.join()}`);
    }
  }
});

test('detects an event delivered with another position', () => {
  const moved = [a0, { ...a1, revision: 7 }, b0];
  assert.deepEqual(rulesOf(checkDelivered(stored, moved)), ['phantom']);
});

test('reports the run and the first violations', () => {
  assertNoViolations([], 'seed 1');
  const many = checkDelivered(
    Array.from({ length: 50 }, (_, index) => at(`e${index}`, 'a', index, index)),
    [],
  );
  assert.throws(
    () => assertNoViolations(many, 'seed 42'),
    /seed 42[^]*not-delivered: e0 \(a @0[^]*of 50/,
  );
});
