// Tests the checks that the failure tests of the real engines rely on: each bug that is put into a store
// must be detected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import type { AppendResult, EventStore, FeedItem, Position } from '../../src/store/index.ts';
import {
  checkDelivered,
  checkStored,
  type EventLocation,
  type HistoryEntry,
} from '../../src/testing/history.ts';
import type { HistoryFile } from '../../src/testing/history-file.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { runWriter } from './operations.ts';
import { newEvent, locationOf, readLocations, streamName } from './rig.ts';

const seeds = Array.from({ length: 6 }, (_, index) => index + 1);

/** Runs a few writers on the store, as in the failure tests, and returns the violated rules. */
async function rulesBroken(
  seed: number,
  bug: (store: EventStore, random: SeededRandom) => EventStore,
): Promise<Set<string>> {
  const history: HistoryEntry[] = [];
  const file: HistoryFile = {
    note: (entry) => void history.push(entry),
    [Symbol.dispose]: () => undefined,
  };
  await using db = openMemory();
  const { store: real } = db;
  const random = seededRandom(seed);
  const store = bug(real, random);
  const delivered: EventLocation[] = [];
  const following = (async () => {
    for await (const item of store.subscribe({ pageSize: 3 })) {
      if (item.kind === 'events') delivered.push(...item.events.map(locationOf));
      if (delivered.some(({ eventId }) => eventId === 'marker')) return;
    }
  })();
  await Promise.all(
    [0, 1, 2].map((index) => {
      let left = 15;
      const settings = { writer: `w${index}`, streams: 4, transactionsPercent: 0 };
      const own = seededRandom(seed * 10 + index);
      const context = { store, history: file, random: own, settings, onOk: () => undefined };
      return runWriter(context, () => left-- > 0);
    }),
  );
  const marker = newEvent('marker');
  const writes = [{ stream: streamName('marker'), expected: 'any', eventIds: ['marker'] }] as const;
  history.push({ kind: 'invoke', operation: 'marker', writes });
  await real.append(streamName('marker'), [marker]);
  await following;
  const stored = await readLocations(real);
  const violations = [...checkStored(history, stored), ...checkDelivered(stored, delivered)];
  return new Set(violations.map(({ rule }) => rule));
}

test('a store without a bug breaks no rule', async () => {
  for (const seed of seeds) {
    assert.deepEqual(await rulesBroken(seed, (store) => store), new Set(), `seed ${seed}`);
  }
});

/** Every seed must violate one of these rules. */
const bugs: Readonly<
  Record<
    string,
    {
      readonly rules: readonly string[];
      readonly bug: (store: EventStore, random: SeededRandom) => EventStore;
    }
  >
> = {
  'acknowledges before storing, and loses some': {
    rules: ['lost'],
    bug: withAppends(async (append, random) => {
      if (random.below(8) > 0) return append();
      return [{ stream: '', revision: 0, position: '0' as Position, isDuplicate: false }];
    }),
  },
  'acknowledges another revision than it stored': {
    rules: ['misplaced'],
    bug: withAppends(async (append, random) => {
      const results = await append();
      const wrong = random.below(8) === 0;
      return wrong ? results.map((each) => ({ ...each, revision: each.revision + 1 })) : results;
    }),
  },
  'stores a rejected append': {
    rules: ['rejected-but-stored'],
    bug: (store, random) => ({
      ...store,
      async append(stream, events, options) {
        const result = await store.append(stream, events, options);
        if (random.below(8) > 0) return result;
        return store.append(stream, [newEvent(`rejected-${stream}`)], { expected: 9_999 });
      },
    }),
  },
  'stores one stream of several': {
    rules: ['lost', 'torn'],
    bug: (store) => ({
      ...store,
      async appendMany(appends, options) {
        const results = await store.appendMany(appends.slice(0, 1), options);
        return appends.map((_each, index) => results[index] ?? (results[0] as AppendResult));
      },
    }),
  },
  'stores a repeated append twice': {
    rules: ['stored-twice'],
    bug: (store, random) => ({
      ...store,
      async append(stream, events, options) {
        const result = await store.append(stream, events, options);
        if (random.below(8) > 0) return result;
        const { revision } = result;
        await store.append(stream, events, { expected: revision });
        return result;
      },
    }),
  },
  'skips an event in the feed': {
    rules: ['not-delivered'],
    bug: withFeed((events, random) => {
      const index = random.below(events.length);
      return random.below(4) === 0 ? events.filter((_each, at) => at !== index) : events;
    }),
  },
  'delivers an event twice': {
    rules: ['delivered-twice'],
    bug: withFeed((events, random) => (random.below(4) === 0 ? [...events, ...events] : events)),
  },
  'swaps two events': {
    rules: ['out-of-order'],
    bug: withFeed((events, random) =>
      random.below(2) === 0 && events.length > 1 ? events.toReversed() : events,
    ),
  },
};

for (const [name, { rules, bug }] of Object.entries(bugs)) {
  test(`the checker detects a store that ${name}, with every seed`, async () => {
    for (const seed of seeds) {
      const found = await rulesBroken(seed, bug);
      assert.ok(
        rules.some((rule) => found.has(rule)),
        `seed ${seed}: none of ${rules.join()} in ${[...found].join()}`,
      );
    }
  });
}

function withAppends(
  change: (
    append: () => Promise<readonly AppendResult[]>,
    random: SeededRandom,
  ) => Promise<readonly AppendResult[]>,
) {
  return (store: EventStore, random: SeededRandom): EventStore => ({
    ...store,
    async append(stream, events, options) {
      const append = async () => [await store.append(stream, events, options)];
      return (await change(append, random))[0] as AppendResult;
    },
  });
}

function withFeed(
  change: (
    events: Extract<FeedItem, { kind: 'events' }>['events'],
    random: SeededRandom,
  ) => Extract<FeedItem, { kind: 'events' }>['events'],
) {
  return (store: EventStore, random: SeededRandom): EventStore => ({
    ...store,
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        const isLast = item.kind === 'events' && item.events.some(isMarker);
        yield item.kind === 'events' && !isLast
          ? { ...item, events: change(item.events, random) }
          : item;
      }
    },
  });
}

function isMarker({ eventId }: { readonly eventId: string }): boolean {
  return eventId === 'marker';
}
