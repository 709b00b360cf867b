import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter, type EventFilter } from '../../store/event-filter.ts';
import { pushDown } from './push-down.ts';

const checkpointInterval = 1;

for (const [what, filter, expected] of [
  ['all but system events', {}, { filterOn: 'eventType', regex: '^[^$].*' }],
  ['everything', { system: true }, undefined],
  ['types', { types: ['a.b.v1'] }, { filterOn: 'eventType', prefixes: ['a.b.v1'] }],
  ['prefixes of types', { typePrefixes: ['a.'] }, { filterOn: 'eventType', prefixes: ['a.'] }],
  ['a pattern of types', { typePattern: '^a|b$' }, { filterOn: 'eventType', regex: '^a|b$' }],
  ['a category', { category: 'a.b.v1' }, { filterOn: 'streamName', prefixes: ['a.b.v1-'] }],
  [
    'a category of a tenant',
    { category: 'a.b.v1', tenant: 'core' },
    { filterOn: 'streamName', prefixes: ['a.b.v1-core-'] },
  ],
  ['a tenant', { tenant: 'core' }, { filterOn: 'streamName', regex: '^[^-]*(-core-|$)' }],
  [
    'types before streams',
    { types: ['a.b.v1'], category: 'a.b.v1' },
    { filterOn: 'eventType', prefixes: ['a.b.v1'] },
  ],
  [
    'streams before type prefixes',
    { typePrefixes: ['a.'], streamPrefixes: ['a.b.v1-core-1'] },
    { filterOn: 'streamName', prefixes: ['a.b.v1-core-1'] },
  ],
] as const satisfies readonly (readonly [string, EventFilter, object | undefined])[]) {
  test(`the server filter for ${what}`, () => {
    const { server } = pushDown(compileFilter(filter), 'strict');
    assert.deepEqual(server, expected && { ...expected, checkpointInterval });
  });
}

test('expressions that the server may interpret differently are not sent', () => {
  const withoutSystem = { filterOn: 'eventType', regex: '^[^$].*', checkpointInterval };
  for (const filter of [
    { typePattern: '(?i)a' },
    { typePattern: '\\w+' },
    { streamPattern: '[[:alpha:]]' },
    { types: [] },
    { typePrefixes: ['', 'a'] },
    { streamPrefixes: Array.from({ length: 100 }, (_, index) => `s${index}`) },
  ]) {
    const { server, isExact } = pushDown(compileFilter(filter), 'strict');
    assert.deepEqual(server, withoutSystem);
    assert.equal(isExact, false);
  }
});

test('an open store does not filter a tenant by stream names', () => {
  const { server } = pushDown(compileFilter({ tenant: 'core', system: true }), 'open');
  assert.equal(server, undefined);
});
