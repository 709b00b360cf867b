// Filters: each part, all parts together, and random filters compared with plain JavaScript.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { seededRandom, type SeededRandom } from '../../seeded-random.ts';
import { filterLimits, type EventFilter } from '../../../store/event-filter.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  unique,
  type StoreCases,
} from './fixture.ts';

export const eventFilterCases: StoreCases = {
  'types: matches one of the list': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ types: ['cat.fed.v1'] }), ['cat.fed.v1', 'cat.fed.v1']);
    assert.deepEqual(await zoo.read({ types: ['dog.fed.v1', 'cat.fed.v1'] }), [
      'cat.fed.v1',
      'dog.fed.v1',
      'cat.fed.v1',
    ]);
    assert.deepEqual(await zoo.read({ types: ['cat.fed', 'CAT.FED.V1', 'cow.fed.v1'] }), []);
  },

  'type prefixes: matches one of the list': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ typePrefixes: ['cat.'] }), [
      'cat.fed.v1',
      'cat.found.v1',
      'cat.fed.v1',
    ]);
    assert.deepEqual(await zoo.read({ typePrefixes: ['dog.fe', 'cat.fo'] }), [
      'dog.fed.v1',
      'cat.found.v1',
    ]);
  },

  'a type pattern matches anywhere unless it is anchored': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ typePattern: 'found' }), ['cat.found.v1']);
    assert.deepEqual(await zoo.read({ typePattern: '^(dog|cow)\\.' }), ['dog.fed.v1']);
    assert.deepEqual(await zoo.read({ typePattern: '^found' }), []);
    assert.deepEqual(await zoo.read({ typePattern: 'fed\\.v[0-9]$' }), [
      'cat.fed.v1',
      'dog.fed.v1',
      'cat.fed.v1',
    ]);
  },

  'stream prefixes: matches one of the list': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ streamPrefixes: [`${zoo.category}-core-dog`] }), [
      'dog.fed.v1',
    ]);
    assert.deepEqual(
      await zoo.read({
        streamPrefixes: [`${zoo.category}-core-cat2`, `${zoo.category}-core-dog`],
      }),
      ['dog.fed.v1', 'cat.fed.v1'],
    );
  },

  'a stream pattern matches anywhere unless it is anchored': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ streamPattern: `${zoo.category}-core-cat[0-9]$` }), [
      'cat.fed.v1',
      'cat.found.v1',
      'cat.fed.v1',
    ]);
    assert.deepEqual(await zoo.read({ streamPattern: '^core' }), []);
  },

  'prefixes are literal, without special characters': async ({ store }) => {
    const category = unique('c');
    const event = newEvent();
    await store.append(`${category}-core-100%_a\\b`, [event]);
    await store.append(`${category}-core-100xxaxb`, [newEvent()]);
    for (const prefix of ['-core-100%', '-core-100%_', '-core-100%_a\\']) {
      const filter = { streamPrefixes: [`${category}${prefix}`] };
      assert.deepEqual(idsOf(await store.readAll({ filter }).toArray()), [event.eventId]);
    }
    const filter = { streamPrefixes: [`${category}-CORE`, `${category}_core`] };
    assert.deepEqual(await store.readAll({ filter }).toArray(), []);
  },

  'a category is the part of the stream name before the first hyphen': async ({ store }) => {
    const category = unique('c');
    const events = new Map<string, DomainEventEnvelope>();
    for (const stream of [
      `${category}.v1-core-1`,
      `${category}.v1-core-b-c-d`,
      `${category}.v10-core-1`,
      `${category}.v`,
      `-core-${category}.v1`,
    ]) {
      const event = newEvent();
      events.set(stream, event);
      await store.append(stream, [event]);
    }
    const inCategory = async (name: string): Promise<string[]> =>
      (await store.readAll({ filter: { category: name } }).toArray()).map(({ stream }) => stream);
    assert.deepEqual(await inCategory(`${category}.v1`), [
      `${category}.v1-core-1`,
      `${category}.v1-core-b-c-d`,
    ]);
    assert.deepEqual(await inCategory(`${category}.v10`), [`${category}.v10-core-1`]);
    assert.deepEqual(
      await inCategory(`${category}.v`),
      [],
      'a stream without a hyphen has no category',
    );
    assert.deepEqual(await inCategory(category), [], 'a category is not a prefix');
    const leading = await inCategory('');
    assert.ok(!leading.includes(`-core-${category}.v1`), 'an empty category matches no stream');
  },

  'a system stream has no category': async ({ open }) => {
    const store = await open({ names: 'open' });
    await store.append('$projections-a', [newEvent()]);
    for (const category of ['$projections', 'projections', '']) {
      const filter = { category, system: true };
      assert.deepEqual(await store.readAll({ filter }).toArray(), []);
    }
  },

  'matches a tenant exactly, not by prefix': async ({ store }) => {
    const category = unique('c');
    const stored = new Map<string, string[]>();
    for (const tenant of ['demo', 'demo-za', 'core', 'demo']) {
      const events = newEvents(2, { tenant });
      stored.set(tenant, [...(stored.get(tenant) ?? []), ...idsOf(events)]);
      await store.append(newStream(category, tenant), events);
    }
    for (const [tenant, ids] of stored) {
      const events = await store.readAll({ filter: { category, tenant } }).toArray();
      assert.deepEqual(idsOf(events), ids);
    }
    assert.deepEqual(await store.readAll({ filter: { category, tenant: 'dem' } }).toArray(), []);
  },

  'all parts of a filter must match': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(
      await zoo.read({
        types: ['cat.fed.v1', 'cat.found.v1'],
        typePrefixes: ['cat.fed'],
        typePattern: 'v1$',
        streamPrefixes: [zoo.category],
        streamPattern: 'cat2$',
        tenant: 'core',
      }),
      ['cat.fed.v1'],
    );
    assert.deepEqual(await zoo.read({ types: ['cat.fed.v1'], typePrefixes: ['dog'] }), []);
    assert.deepEqual(await zoo.read({ tenant: 'demo' }), []);
  },

  'an empty list matches nothing, an empty filter everything': async ({ store }) => {
    const zoo = await fillZoo(store);
    assert.deepEqual(await zoo.read({ types: [] }), []);
    assert.deepEqual(await zoo.read({ streamPrefixes: [] }), []);
    assert.equal((await zoo.read({})).length, 4);
    assert.equal((await zoo.read({ typePrefixes: [''], typePattern: '' })).length, 4);
  },

  'hides system events unless they are requested': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    await store.setStreamMetadata(stream, { maxCount: 10 });
    await store.tombstoneStream(stream);
    const types = async (filter: EventFilter): Promise<string[]> => {
      const streamPrefixes = [stream, `$$${stream}`];
      const events = await store.readAll({ filter: { ...filter, streamPrefixes } }).toArray();
      return events.map(({ type }) => type);
    };
    assert.deepEqual(await types({}), ['account.credited.v1']);
    assert.deepEqual(await types({ system: false }), ['account.credited.v1']);
    assert.deepEqual(await types({ types: ['$metadata'] }), []);
    assert.deepEqual(await types({ system: true }), [
      'account.credited.v1',
      '$metadata',
      '$streamDeleted',
    ]);
    assert.deepEqual(await types({ system: true, typePrefixes: ['$m'] }), ['$metadata']);
  },

  'a pattern with catastrophic backtracking takes no time': async ({ store }) => {
    const category = unique('c');
    const stream = `${category}-core-${'a'.repeat(150)}b`;
    await store.append(stream, newEvents(20));
    for (const streamPattern of ['(a+)+$', '(a|a)*$', '(a|aa)+$', '([a-z]+)*X']) {
      const filter = { category, streamPattern };
      const found = await store.readAll({ filter }).toArray();
      assert.equal(found.length, streamPattern === '(a|a)*$' ? 20 : 0, streamPattern);
    }
  },

  'rejects an invalid pattern and one that needs backtracking': async ({ store, signal }) => {
    for (const pattern of ['(', '[a', 'a**', '(a)\\1', '(?=a)b', '(?<!a)b', 'a{2,1}', '\\']) {
      for (const filter of [{ typePattern: pattern }, { streamPattern: pattern }]) {
        await rejectsWith(async () => store.readAll({ filter }).toArray(), 'FILTER_INVALID');
        await rejectsWith(
          () => follow(store.subscribe({ filter, signal })).next(),
          'FILTER_INVALID',
        );
      }
    }
  },

  'rejects a filter that is too large': async ({ store }) => {
    const list = Array.from({ length: filterLimits.listItemsMax + 1 }, (_, index) => `t${index}`);
    const pattern = 'a'.repeat(filterLimits.patternCharsMax + 1);
    for (const filter of [
      { types: list },
      { typePrefixes: list },
      { streamPrefixes: list },
      { typePattern: pattern },
      { streamPattern: pattern },
    ]) {
      await rejectsWith(async () => store.readAll({ filter }).toArray(), 'FILTER_INVALID');
    }
  },

  'accepts lists of the maximum size': async ({ store }) => {
    const zoo = await fillZoo(store);
    const list = Array.from({ length: filterLimits.listItemsMax - 1 }, (_, index) => `t${index}`);
    assert.deepEqual(await zoo.read({ types: [...list, 'dog.fed.v1'] }), ['dog.fed.v1']);
    assert.deepEqual(await zoo.read({ typePrefixes: [...list, 'dog'] }), ['dog.fed.v1']);
  },

  'finds a match after thousands of other events, in both directions': async ({ open }) => {
    const store = await open();
    const [first, second] = newEvents(2, { type: 'account.opened.v1' });
    assert.ok(first !== undefined && second !== undefined);
    const stream = newStream();
    await store.append(stream, [first]);
    for (let round = 0; round < 4; round += 1) await store.append(stream, newEvents(1_000));
    await store.append(stream, [second]);
    for (const filter of [
      { types: ['account.opened.v1'] },
      { typePattern: 'opened' },
      { typePrefixes: ['account.o'], streamPrefixes: ['banking.'] },
      { category: 'banking.account.v1', tenant: 'core', types: ['account.opened.v1'] },
    ]) {
      assert.deepEqual(idsOf(await store.readAll({ filter }).toArray()), idsOf([first, second]));
      const backwards = await store.readAll({ filter, direction: 'backwards', limit: 1 }).toArray();
      assert.deepEqual(idsOf(backwards), idsOf([second]));
    }
  },

  'finds a new type, stream or tenant at once': async ({ store }) => {
    const category = unique('c');
    for (let round = 1; round < 6; round += 1) {
      const type = `account.step-taken.v${round}`;
      const tenant = `t${round}`;
      const event = newEvent({ type, tenant });
      for (const filter of [
        { category, types: [type] },
        { category, tenant },
      ]) {
        assert.deepEqual(await store.readAll({ filter }).toArray(), []);
      }
      await store.append(newStream(category, tenant), [event]);
      for (const filter of [
        { category, types: [type] },
        { category, typePattern: `v${round}$` },
        { category, tenant },
      ]) {
        assert.deepEqual(idsOf(await store.readAll({ filter }).toArray()), [event.eventId]);
      }
    }
  },

  'random filters find the same events as plain JavaScript': async ({ open }) => {
    const random = seededRandom(20_250_930);
    const store = await open();
    for (let index = 0; index < 60; index += 1) await appendAtRandom(store, random);
    const all = await store.readAll({ filter: { system: true, streamPrefixes } }).toArray();
    for (let index = 0; index < 40; index += 1) {
      const filter = randomFilter(random);
      const direction = random.pick(['forwards', 'backwards'] as const);
      const from = random.below(2) === 0 ? undefined : random.pick(all);
      const limit = random.pick([1, 5, 1_000, Number.POSITIVE_INFINITY]);
      const events = await store
        .readAll({
          filter,
          direction,
          limit,
          pageSize: random.pick([1, 3, 10, 500]),
          ...(from === undefined ? {} : { after: from.position }),
        })
        .toArray();
      const ordered = direction === 'forwards' ? all : all.toReversed();
      const expected = ordered
        .slice(from === undefined ? 0 : ordered.indexOf(from) + 1)
        .filter((event) => matches(filter, event))
        .slice(0, limit);
      assert.deepEqual(idsOf(events), idsOf(expected), JSON.stringify({ filter, direction }));
    }
  },

  'a subscription finds the same events as a read with the same filter': async ({
    open,
    signal,
  }) => {
    const random = seededRandom(7);
    const store = await open();
    for (let index = 0; index < 40; index += 1) await appendAtRandom(store, random);
    for (let index = 0; index < 12; index += 1) {
      const filter = randomFilter(random);
      await using follower = follow(
        store.subscribe({ filter, signal, pageSize: random.pick([1, 4, 500]) }),
      );
      await follower.caughtUp();
      const expected = await store.readAll({ filter }).toArray();
      assert.deepEqual(idsOf(follower.events), idsOf(expected), JSON.stringify(filter));
    }
  },
};

interface Zoo {
  readonly category: string;
  /** The types of the sample events that the filter finds. */
  read(filter: EventFilter): Promise<string[]>;
}

async function fillZoo(store: EventStore): Promise<Zoo> {
  const category = unique('zoo');
  for (const [animal, type] of [
    ['cat1', 'cat.fed.v1'],
    ['dog1', 'dog.fed.v1'],
    ['cat1', 'cat.found.v1'],
    ['cat2', 'cat.fed.v1'],
  ] as const) {
    await store.append(`${category}-core-${animal}`, [newEvent({ type })]);
  }
  return {
    category,
    async read(filter) {
      const events = await store.readAll({ filter: { category, ...filter } }).toArray();
      return events.map(({ type }) => type);
    },
  };
}

const categories = ['banking.account.v1', 'banking.account.v10', 'crm.contact.v1'];
const types = ['account.opened.v1', 'account.closed.v1', 'account.closed.v2', 'contact.added.v1'];
const tenants = ['core', 'demo', 'demo-za'];
/** Of all streams that `appendAtRandom` writes. */
const streamPrefixes = ['banking.', 'crm.', 'plain', '$$'];

async function appendAtRandom(store: EventStore, random: SeededRandom): Promise<void> {
  const tenant = random.pick(tenants);
  const stream = random.pick([
    `${random.pick(categories)}-${tenant}-${random.below(3)}`,
    `plain${random.below(3)}`,
  ]);
  if (random.below(8) === 0) return store.setStreamMetadata(stream, { custom: { by: tenant } });
  const events = Array.from({ length: 1 + random.below(4) }, () =>
    newEvent({ tenant, type: random.pick(types) }),
  );
  await store.append(stream, events);
}

function randomFilter(random: SeededRandom): EventFilter {
  const maybe = <T>(value: T, chance = 4): T | undefined =>
    random.below(chance) === 0 ? value : undefined;
  const parts: Record<keyof EventFilter, unknown> = {
    types: maybe([random.pick(types), random.pick(types)]),
    typePrefixes: maybe([random.pick(['account', 'account.c', 'contact', '$', ''])]),
    typePattern: maybe(random.pick(['closed', '^account', 'v2$', 'o.e', '[ae]d\\.v1$', 'xyz'])),
    streamPrefixes: maybe([random.pick(streamPrefixes), random.pick(['banking.account.v1-', 'x'])]),
    streamPattern: maybe(random.pick(['-core-', '[02]$', '^plain', 'demo', 'v1-'])),
    category: maybe(random.pick([...categories, 'banking', 'plain0'])),
    tenant: maybe(random.pick([...tenants, 'za'])),
    system: maybe(true, 2),
  };
  // A server may add system events at any time.
  if (parts.system === true) parts.streamPrefixes ??= streamPrefixes;
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
}

/** Evaluates the filter in a simple, slow way. */
function matches(filter: EventFilter, event: RecordedEvent): boolean {
  const { type, stream, tenant } = event;
  const hyphen = stream.indexOf('-');
  const category = stream.startsWith('$') || hyphen < 1 ? undefined : stream.slice(0, hyphen);
  return (
    (filter.system === true || !type.startsWith('$')) &&
    (filter.types?.includes(type) ?? true) &&
    (filter.typePrefixes?.some((prefix) => type.startsWith(prefix)) ?? true) &&
    (filter.typePattern === undefined || new RegExp(filter.typePattern).test(type)) &&
    (filter.streamPrefixes?.some((prefix) => stream.startsWith(prefix)) ?? true) &&
    (filter.streamPattern === undefined || new RegExp(filter.streamPattern).test(stream)) &&
    (filter.category === undefined || filter.category === category) &&
    (filter.tenant === undefined || filter.tenant === tenant)
  );
}
