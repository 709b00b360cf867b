import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { createSubjectIndex, subjectIndexLimits } from './subject-index.ts';
import { matchSubject } from './subject-match.ts';
import { subjects } from './subjects.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const token = fc.constantFrom('a', 'b', 'c');
const subject = fc.array(token, { minLength: 1, maxLength: 5 }).map((tokens) => tokens.join('.'));
const pattern = fc
  .tuple(
    fc.array(fc.oneof(token, fc.constant('*')), { minLength: 0, maxLength: 4 }),
    fc.constantFrom('a', '*', '>'),
  )
  .map(([tokens, last]) => [...tokens, last].join('.'));

test('finds what the matcher finds, through any sequence of adding and removing', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ add: pattern, value: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ remove: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ match: subject }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const index = createSubjectIndex<number>();
      const model: { pattern: string; value: number; remove: () => void }[] = [];
      for (const next of steps) {
        if ('add' in next) {
          const remove = index.add(next.add, next.value);
          model.push({ pattern: next.add, value: next.value, remove });
        } else if ('match' in next) {
          const expected = model.filter((entry) => matchSubject(entry.pattern, next.match));
          const values = expected.map((entry) => entry.value);
          assert.deepEqual(sorted(index.match(next.match)), sorted(values));
        } else if (model.length > 0) {
          const [gone] = model.splice(next.remove % model.length, 1);
          gone?.remove();
        }
        assert.equal(index.size, model.length);
      }
      for (const entry of model) entry.remove();
      assert.equal(index.size, 0);
      assert.deepEqual(index.match('a.b.c'), []);
    }),
    { numRuns: propertyRuns(400) },
  );
});

test('finds the subscriptions of the document', () => {
  const index = createSubjectIndex<string>();
  const { notify, events, tasks } = subjects;
  for (const wanted of [
    notify.customer('cust_abc123').all,
    notify.everyCustomer.alert,
    notify.broadcast.all,
    events.all,
    tasks.type('email-send').all,
    tasks.everyType.terminal,
  ]) {
    index.add(wanted, wanted);
  }
  const found = (text: string): string[] => index.match(text).toSorted();
  assert.deepEqual(found('gbe.notify.customer.cust_abc123.alert'), [
    'gbe.notify.customer.*.alert',
    'gbe.notify.customer.cust_abc123.>',
  ]);
  assert.deepEqual(found('gbe.notify.customer.other.alert'), ['gbe.notify.customer.*.alert']);
  assert.deepEqual(found('gbe.notify.customer.other.info'), []);
  assert.deepEqual(found('gbe.events.auth.failure'), ['gbe.events.>']);
  assert.deepEqual(found('gbe.tasks.email-send.terminal'), [
    'gbe.tasks.*.terminal',
    'gbe.tasks.email-send.>',
  ]);
  assert.deepEqual(found('gbe.tasks._control.sweep'), []);
});

test('finds each of many patterns, and only it', () => {
  const index = createSubjectIndex<number>();
  const removers: (() => void)[] = [];
  for (let i = 0; i < 20_000; i += 1) {
    removers.push(index.add(subjects.notify.customer(`c${i}`)[i % 2 === 0 ? 'all' : 'info'], i));
  }
  for (let i = 0; i < 20_000; i += 7) assert.deepEqual(index.match(infoOf(i)), [i]);
  for (let i = 0; i < 20_000; i += 3) removers[i]?.();
  for (let i = 0; i < 20_000; i += 7) {
    assert.deepEqual(index.match(infoOf(i)), i % 3 === 0 ? [] : [i]);
  }
});

test('visits a value as often as it was added, and forgets it as often as it is removed', () => {
  const index = createSubjectIndex<string>();
  const [first, second] = [index.add('a', 'v'), index.add('a', 'v')];
  index.add('a', 'w');
  assert.deepEqual(index.match('a').toSorted(), ['v', 'v', 'w']);
  first();
  first();
  assert.deepEqual(index.match('a').toSorted(), ['v', 'w']);
  second();
  assert.deepEqual(index.match('a'), ['w']);
  assert.equal(index.size, 1);
});

test('keeps undefined, null and maps as values like any other', () => {
  const index = createSubjectIndex<unknown>();
  const map = new Map([['x', 2]]);
  for (const [i, value] of [undefined, null, map].entries()) index.add(`t.v${i}`, value);
  assert.deepEqual(index.match('t.v0'), [undefined]);
  assert.deepEqual(index.match('t.v1'), [null]);
  assert.equal(index.match('t.v2')[0], map);
});

test('lets the visitor add, remove and match while it is visiting', () => {
  const index = createSubjectIndex<string>();
  const removers = ['a.*', 'a.>', 'a.b', 'a.b'].map((text, i) => index.add(text, `v${i}`));
  const visited: string[] = [];
  index.forEachMatch('a.b', (value) => {
    visited.push(value);
    for (const remove of removers) remove();
    index.add('a.b', 'late');
    assert.ok(index.match('a.b').every((inner) => inner === 'late'));
  });
  assert.deepEqual(visited.toSorted(), ['v0', 'v1', 'v2', 'v3']);
  assert.deepEqual(index.match('a.b'), ['late', 'late', 'late', 'late']);
});

test('is whole after a visitor has thrown', () => {
  const index = createSubjectIndex<string>();
  index.add('a', 'v');
  index.add('*', 'w');
  const failing = (): void =>
    index.forEachMatch('a', (value) => assert.fail(`visitor of ${value}`));
  assert.throws(failing, /visitor of/);
  assert.deepEqual(index.match('a').toSorted(), ['v', 'w']);
});

test('matches nothing for a subject that NATS would refuse', () => {
  const index = createSubjectIndex<string>();
  for (const text of ['>', '*', 'a.*', 'a.>', '*.*', '*.*.*']) index.add(text, text);
  for (const text of ['', '.', 'a.', '.a', 'a..b']) assert.deepEqual(index.match(text), [], text);
});

test('refuses invalid patterns and stays as it was', () => {
  const index = createSubjectIndex<string>();
  for (const text of ['', 'a..b', 'a*', 'a.>.b', 'a b', deep(33, 'a')]) {
    assert.throws(() => index.add(text, 'v'), isInvalid, text);
  }
  assert.equal(index.size, 0);
});

test('refuses subjects beyond the limits, and matches at them', () => {
  const index = createSubjectIndex<string>();
  index.add('>', 'all');
  index.add(deep(32, '*'), 'deep');
  assert.deepEqual(index.match(deep(32, 'a')).toSorted(), ['all', 'deep']);
  assert.throws(() => index.match(deep(33, 'a')), isInvalid);
  assert.throws(
    () => index.match('x'.repeat(256)),
    (error) => hasCode(error, 'KEY_TOO_LONG'),
  );
});

test('has room for every arrangement of wildcards in eight tokens, but not for endless ones', () => {
  const index = createSubjectIndex<number>();
  for (let length = 0; length <= 8; length += 1) {
    for (let bits = 0; bits < 1 << length; bits += 1) {
      const tokens = arrangement(bits, length);
      if (length > 0) index.add(tokens.join('.'), bits);
      index.add([...tokens, '>'].join('.'), bits);
    }
  }
  assert.equal(index.size, 1021);
  assert.equal(index.match(deep(8, 'a')).length, 256 + 255);
  const removers: (() => void)[] = [];
  for (let bits = 0; index.size < subjectIndexLimits.shapesMax; bits += 1) {
    removers.push(index.add(wide(bits), bits));
  }
  assert.throws(() => index.add(wide(500), 0), isInvalid);
  index.add(wide(0), 0);
  for (const remove of removers) remove();
  for (let i = 0; i < 10; i += 1) index.add(wide(500), 0)();
  for (const [bits] of removers.entries()) index.add(wide(bits), bits);
  assert.throws(() => index.add(wide(500), 0), isInvalid);
});

function sorted(values: readonly number[]): number[] {
  return values.toSorted((a, b) => a - b);
}

function arrangement(bits: number, length: number): string[] {
  return Array.from({ length }, (_, i) => ((bits >>> i) & 1 ? '*' : 'a'));
}

function wide(bits: number): string {
  return arrangement(bits, 9).join('.');
}

function infoOf(i: number): string {
  return `gbe.notify.customer.c${i}.info`;
}

function deep(length: number, text: string): string {
  return Array.from({ length }, () => text).join('.');
}

function isInvalid(error: unknown): boolean {
  return hasCode(error, 'NAME_INVALID');
}
