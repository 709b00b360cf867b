import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { checkProjectionSource, sourceFilter, type SourceAggregate } from './source-streams.ts';
import { projection, readModel } from '../../projections/index.ts';

const source = (category: string, ...types: string[]): SourceAggregate => {
  const [bc = '', name = '', version = ''] = category.split('.');
  const events = types.map((type) => ({ type, agg: name, parse: (payload: unknown) => payload }));
  return {
    bc,
    name,
    category,
    version: Number(version.slice(1)),
    events,
  } as unknown as SourceAggregate;
};
const account = source('banking.account.v1', 'account.opened.v1', 'account.closed.v1');
const accountV2 = source('banking.account.v2', 'account.opened.v2', 'account.closed.v1');
const crm = source('crm.account.v1', 'account.opened.v1');
const shop = source('shop.account.v1', 'account.opened.v1');
const letter = source('banking.letter.v1', 'letter.sent.v1');
const scope = (own: readonly SourceAggregate[], others: readonly SourceAggregate[] = []) => ({
  name: 'sub:a:b:v1',
  own,
  all: [...own, ...others],
});
const invalid = (pattern: RegExp) => (error: unknown) =>
  hasCode(error, 'CONFIG_INVALID') && pattern.test(error.message);

test('event types are those of the aggregates of the module', () => {
  const { streamPrefixes } = sourceFilter(
    { types: ['account.opened.v1', 'letter.sent.v1'] },
    scope([account, letter], [crm]),
  );
  assert.deepEqual(streamPrefixes, ['banking.account.v1-', 'banking.letter.v1-']);
});

test('an event type of two versions of an aggregate of the module is read from both', () => {
  const { streamPrefixes } = sourceFilter(
    { types: ['account.closed.v1'] },
    scope([account, accountV2]),
  );
  assert.deepEqual(streamPrefixes, ['banking.account.v1-', 'banking.account.v2-']);
});

test('without an aggregate of the module, one aggregate of the other modules is the source', () => {
  const filter = { types: ['account.opened.v1'], tenant: 'core' };
  assert.deepEqual(sourceFilter(filter, scope([letter], [crm])), {
    ...filter,
    streamPrefixes: ['crm.account.v1-'],
  });
  assert.throws(
    () => sourceFilter(filter, scope([letter], [crm, shop])),
    invalid(/crm\.account\.v1 and shop\.account\.v1: name one/),
  );
  assert.throws(
    () => sourceFilter({ types: ['planet.found.v1'] }, scope([letter], [crm])),
    invalid(/no aggregate of the platform declares 'planet\.found\.v1'/),
  );
});

test('streams that the definition names are kept', () => {
  for (const filter of [
    { types: ['account.opened.v1'], category: 'crm.account.v1' },
    { streamPrefixes: ['crm.'] },
    { streamPattern: '^crm' },
  ]) {
    assert.equal(sourceFilter(filter, scope([account], [crm, shop])), filter);
  }
});

test('prefixes and patterns of types mean the events of the module, then those of others', () => {
  const filter = { typePrefixes: ['account.'] };
  const own = sourceFilter(filter, scope([accountV2], [crm, shop]));
  assert.deepEqual(own.streamPrefixes, ['banking.account.v2-']);
  const other = sourceFilter({ typePattern: '^account' }, scope([letter], [crm]));
  assert.deepEqual(other.streamPrefixes, ['crm.account.v1-']);
  assert.throws(
    () => sourceFilter({ typePrefixes: ['planet.'] }, scope([letter], [crm])),
    invalid(/no aggregate of the platform declares these event types/),
  );
});

test('a filter without types means all events of the module; a module without aggregates reads all', () => {
  const { streamPrefixes } = sourceFilter({}, scope([account, letter], [crm]));
  assert.deepEqual(streamPrefixes, ['banking.account.v1-', 'banking.letter.v1-']);
  assert.deepEqual(sourceFilter({}, scope([], [crm])), {});
});

const accountsOf = (version: number, category?: string) =>
  projection({
    name: `sub:banking:accounts:v${version}`,
    readModel: readModel<object>({ bc: 'banking', aggregate: 'account', version }),
    ...(category === undefined ? {} : { filter: { category } }),
    on: { 'account.opened.v1': () => ({}) },
  });

test('a projection reads the category of its read model', () => {
  assert.equal(accountsOf(1).filter.category, 'banking.account.v1');
  assert.equal(accountsOf(2, 'banking.account.v1').filter.category, 'banking.account.v1');
});

test('a projection whose category no aggregate has is rejected with the nearest one', () => {
  checkProjectionSource(accountsOf(1), [account, crm]);
  checkProjectionSource(accountsOf(2, 'banking.account.v1'), [account]);
  // The events come from another service.
  checkProjectionSource(accountsOf(1), [letter]);
  checkProjectionSource(accountsOf(1, 'books.account.v1'), [crm]);
  assert.throws(
    () => checkProjectionSource(accountsOf(2), [crm, account]),
    invalid(/'banking\.account\.v2'.*filter: \{ category: 'banking\.account\.v1' \}/),
  );
  assert.throws(
    () => checkProjectionSource(accountsOf(1), [crm]),
    invalid(/'banking\.account\.v1'.*filter: \{ category: 'crm\.account\.v1' \}/),
  );
});
