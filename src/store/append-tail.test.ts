import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter, type EventFilter } from './event-filter.ts';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { rowBytes } from './page-bound.ts';
import type { AllPage } from './store-engine.ts';
import { createAppendTail, tailLimits, tailRows, type TailRow } from './append-tail.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const stream = 'banking.account.v1-core-a1';
const row = (sequence: number, changed: Partial<TailRow> = {}): TailRow => ({
  sequence,
  stream,
  revision: sequence - 1,
  eventId: `e${sequence}`,
  type: 'account.opened.v1',
  tenant: 'core',
  recordedAtMs: 1,
  payload: '{}',
  meta: '{}',
  ...changed,
});
const rows = (first: number, last: number): TailRow[] =>
  Array.from({ length: last - first + 1 }, (_, at) => row(first + at));
const query = (
  after: number,
  {
    filter,
    limit = 100,
    bytesMax = 1e9,
  }: { filter?: EventFilter; limit?: number; bytesMax?: number } = {},
) => ({
  direction: 'forwards' as const,
  isLive: true,
  after,
  limit,
  bytesMax,
  filter: compileFilter(filter),
});

test('reads the rows after any position in memory, and nothing after the last row', () => {
  const tail = createAppendTail();
  assert.equal(tail.read(query(0)), undefined);
  tail.add(rows(5, 8));
  assert.equal(tail.last, 8);
  assert.equal(tail.read(query(3)), undefined, 'the one after it is not known here');
  assert.deepEqual(tail.read(query(4)), { rows: rows(5, 8), considered: 8, end: true });
  assert.deepEqual(tail.read(query(7)), { rows: rows(8, 8), considered: 8, end: true });
  assert.equal(tail.read(query(8)), undefined, 'others may have written since');
  assert.equal(tail.read(query(9)), undefined);
  assert.equal(tail.read({ ...query(6), isLive: false }), undefined, 'others may have, too');
});

test('reads backwards if the whole page is in memory', () => {
  const tail = createAppendTail();
  tail.add([...rows(5, 7), row(8, { tenant: 'acme' })]);
  const back = (after: number, limit: number, filter: EventFilter = {}) =>
    tail.read({ ...query(after, { filter, limit }), direction: 'backwards' });
  assert.deepEqual(back(9, 2, { tenant: 'core' }), {
    rows: rows(6, 7).toReversed(),
    considered: 6,
    end: false,
  });
  assert.deepEqual(back(7, 1)?.rows, rows(6, 6));
  assert.equal(back(10, 1), undefined, 'others may have written since');
  assert.equal(back(7, 3), undefined, 'the third one is not known here');
  assert.equal(back(5, 1), undefined);
  assert.equal(back(2, 1), undefined);
  assert.equal(createAppendTail().read({ ...query(1), direction: 'backwards' }), undefined);
});

test('a gap, written by another process, clears the tail', () => {
  const tail = createAppendTail();
  tail.add(rows(1, 3));
  tail.add(rows(5, 6));
  assert.equal(tail.read(query(2)), undefined);
  assert.equal(tail.read(query(3)), undefined);
  assert.deepEqual(tail.read(query(4))?.rows, rows(5, 6));
});

test('rows of an overtaken commit are ignored, and the tail stays without gaps', () => {
  const tail = createAppendTail();
  tail.add(rows(4, 6));
  tail.add(rows(2, 3));
  assert.equal(tail.last, 6);
  assert.equal(tail.read(query(1)), undefined);
  assert.deepEqual(tail.read(query(3))?.rows, rows(4, 6));
});

test('a page ends at its limit, and reports how far it read if no row matches', () => {
  const tail = createAppendTail();
  tail.add([...rows(1, 4), row(5, { stream: 'shop.order.v1-acme-1', tenant: 'acme' }), row(6)]);
  assert.deepEqual(tail.read(query(0, { limit: 2 })), {
    rows: rows(1, 2),
    considered: 2,
    end: false,
  });
  const of = (filter: EventFilter): readonly number[] | undefined =>
    tail.read(query(0, { filter }))?.rows.map(({ sequence }) => sequence);
  assert.deepEqual(of({ tenant: 'acme' }), [5]);
  assert.deepEqual(of({ category: 'shop.order.v1' }), [5]);
  assert.deepEqual(of({ streamPrefixes: ['shop.'] }), [5]);
  assert.deepEqual(of({ types: ['account.closed.v1'] }), []);
  assert.equal(tail.read(query(0, { filter: { tenant: 'unknown' } }))?.considered, 6);
});

test('the tail is bounded and can be cleared', () => {
  const tail = createAppendTail();
  for (let at = 1; at <= 3 * tailLimits.rowsMax; at += 1) tail.add([row(at)]);
  const last = 3 * tailLimits.rowsMax;
  assert.equal(tail.read(query(last - tailLimits.rowsMax - 1)), undefined);
  const all = tail.read(query(last - tailLimits.rowsMax, { limit: 1e6 }));
  assert.equal(all?.rows.length, tailLimits.rowsMax);
  tail.add([row(last + 1, { payload: 'x'.repeat(tailLimits.bytesMax / 2) })]);
  assert.equal(tail.read(query(last)), undefined, 'too long for the tail');
  tail.add([row(last + 2)]);
  assert.equal(tail.read(query(last + 1))?.rows.length, 1);
  tail.forget();
  assert.equal(tail.read(query(last + 1)), undefined);
  assert.equal(tail.last, last + 2);
});

test('an evicted row leaves the memory', async () => {
  const tail = createAppendTail();
  const evicted: WeakRef<TailRow>[] = [];
  const large = '\u0394'.repeat(tailLimits.bytesMax / 4);
  for (let at = 1; at <= 6; at += 1) {
    const added = row(at, { payload: large });
    tail.add([added]);
    evicted.push(new WeakRef(added));
  }
  // The references of this turn keep their rows alive.
  await nextTurn();
  collectGarbage();
  assert.equal(evicted.filter((each) => each.deref() !== undefined).length, 1);
  assert.equal(tail.read(query(5))?.rows.length, 1);
});

test('a page ends with the row that reaches its size, in both directions', () => {
  const tail = createAppendTail();
  tail.add(rows(1, 9));
  const bytesMax = 2 * rowBytes(row(1)) + 1;
  const sequences = (page: AllPage | undefined) => page?.rows.map(({ sequence }) => sequence);
  const forwards = tail.read(query(3, { bytesMax }));
  assert.deepEqual(
    [sequences(forwards), forwards?.considered, forwards?.end],
    [[4, 5, 6], 6, false],
  );
  const back = tail.read({ ...query(7, { bytesMax }), direction: 'backwards' });
  assert.deepEqual([sequences(back), back?.considered, back?.end], [[6, 5, 4], 4, false]);
});

test('the rows of an append equal the rows in the database', () => {
  const written = rows(1, 2).map(({ eventId, type, tenant, payload, meta }) => ({
    eventId,
    type,
    tenant,
    payload,
    meta,
  }));
  const at = { revision: 11, sequence: 42 };
  assert.deepEqual(tailRows({ stream, expected: 'any', rows: written }, 1, at), [
    row(41, { revision: 10, eventId: 'e1' }),
    row(42, { revision: 11, eventId: 'e2' }),
  ]);
});
