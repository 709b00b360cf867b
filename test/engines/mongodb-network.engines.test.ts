// Writers and readers on a network in which every call and every reply can be late or lost.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { MongoClient, MongoNetworkError, type Db } from 'mongodb';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { openHistory } from '../../src/testing/history-file.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { runWriter } from '../store/operations.ts';
import {
  inTime,
  newEvent,
  newEvents,
  newSeed,
  readLocations,
  streamName,
  until,
} from '../store/rig.ts';
import { interceptedDb } from './intercepted-db.ts';
import { newRun } from './mongodb-run.ts';
import {
  onEachMongodb,
  type MongodbTarget,
} from '../../src/testing/support/mongodb/mongodb-targets.ts';

interface Network {
  /** The percentage of calls that are lost, and of replies that are lost. */
  readonly lostPercent: number;
  readonly lateMsMax: number;
}

function badNetwork(db: Db, random: SeededRandom, { lostPercent, lateMsMax }: Network): Db {
  const transfer = async (what: string): Promise<void> => {
    if (random.below(3) === 0) await systemClock.sleep(random.next() * lateMsMax);
    if (random.below(100) < lostPercent) throw new MongoNetworkError(`${what} was lost`);
  };
  return interceptedDb(db, (operation, call) => async (...args) => {
    await transfer(`the call of ${operation}`);
    const result = await call(...args);
    await transfer(`the reply to ${operation}`);
    return result;
  });
}

/** Loses the reply to the first call of this operation. */
function losingAnswer(db: Db, lost: string): { readonly db: Db; isLost(): boolean } {
  let isLost = false;
  const losing = interceptedDb(db, (operation, call) => async (...args) => {
    const result = await call(...args);
    if (operation !== lost || isLost) return result;
    isLost = true;
    throw new MongoNetworkError('the reply was lost');
  });
  return { db: losing, isLost: () => isLost };
}

async function connect(target: MongodbTarget): Promise<MongoClient> {
  return new MongoClient(target.url()).connect();
}

onEachMongodb('a network that delays and loses messages', (target) => {
  const rounds = 4;

  test(`writers of three stores and their readers agree although calls are late or lost, in ${rounds} rounds`, async () => {
    await using client = await connect(target);
    const firstSeed = newSeed();
    for (let seed = firstSeed; seed < firstSeed + rounds; seed += 1) {
      await using run = await newRun(target, seed);
      await Promise.all(
        [0, 1, 2].map(async (index) => {
          const random = seededRandom(seed * 10 + index);
          const network = { lostPercent: 2, lateMsMax: 20 };
          const db = badNetwork(client.db(run.database), random, network);
          await using engine = await openPersistently(db);
          const { store } = engine;
          using history = openHistory(join(run.workspace.folder, `${index}.history`));
          const leaving = new AbortController();
          // This reader can see a commit before the append in the same process completes.
          const reading = (async () => {
            for await (const { position } of store.subscribe({ signal: leaving.signal })) {
              void position;
            }
          })();
          await Promise.all(
            ['a', 'b'].map((name) => {
              const settings = { writer: `${index}${name}`, streams: 4, transactionsPercent: 0 };
              let left = 15;
              const context = { store, history, random, settings, onOk: () => undefined };
              return runWriter(context, () => left-- > 0);
            }),
          );
          leaving.abort();
          await reading;
        }),
      );
      await run.check();
    }
  });

  test('a single writer never gets a conflict, however late the replies arrive', async () => {
    await using client = await connect(target);
    const seed = newSeed();
    const random = seededRandom(seed);
    const network = { lostPercent: 0, lateMsMax: 30 };
    const db = badNetwork(client.db(target.newDatabase()), random, network);
    await using engine = await openMongo(db, { pollIntervalMs: 5 });
    const { store } = engine;
    const leaving = new AbortController();
    const reading = store.subscribe({ signal: leaving.signal });
    const read = (async () => (await Array.fromAsync(reading)).length)();
    const count = 40;
    await Promise.all(
      [0, 1, 2].map(async (writer) => {
        for (let index = 0; index < count; index += 1) {
          if (random.below(4) === 0) await systemClock.sleep(random.next() * 100);
          const expected = index === 0 ? 'none' : index - 1;
          await store.append(streamName(writer), [newEvent(`${writer}-${index}`)], { expected });
        }
      }),
    );
    leaving.abort();
    await read;
    assert.equal((await readLocations(store)).length, 3 * count, `MILLRACE_SEED=${seed}`);
  });

  test('a commit that is read before its reply arrives does not undo later commits', async () => {
    await using client = await connect(target);
    const insert = gate();
    const copy = gate();
    const gates = new Map([
      ['events_commits.insertOne', insert],
      ['events.insertMany', copy],
    ]);
    const db = interceptedDb(
      client.db(target.newDatabase()),
      (operation, call) =>
        async (...args) => {
          const result = await call(...args);
          await gates.get(operation)?.pass();
          return result;
        },
    );
    await using engine = await openMongo(db);
    const { store } = engine;
    const append = (id: number) =>
      store.append(streamName('a'), [newEvent(`e-${id}`)], {
        expected: id === 0 ? 'none' : id - 1,
      });
    await append(0);
    await store.head();
    insert.close();
    const late = append(1);
    await inTime('the insert', insert.reached());
    copy.close();
    const reading = store.head();
    await inTime('the read of the head', copy.reached());
    insert.open();
    await late;
    await append(2);
    copy.open();
    await reading;
    await append(3);
    const revisions = (await readLocations(store)).map(({ revision }) => revision);
    assert.deepEqual(revisions, [0, 1, 2, 3]);
  });

  test('appends wait while too many acknowledged events are not yet copied', async () => {
    await using client = await connect(target);
    const own = client.db(target.newDatabase());
    const copy = gate();
    const db = interceptedDb(own, (operation, call) => async (...args) => {
      if (operation === 'events.insertMany') await copy.pass();
      return call(...args);
    });
    await using engine = await openMongo(db);
    const { store } = engine;
    await store.append(streamName('a'), [newEvent('first')]);
    await store.head();
    copy.close();
    const text = 'x'.repeat(900_000);
    let acknowledged = 0;
    const appending = (async () => {
      for (let append = 0; append < 5; append += 1) {
        const events = newEvents(`${append}`, 7).map((event) => ({ ...event, payload: { text } }));
        await store.append(streamName('a'), events, { expected: append * 7 });
        acknowledged += 1;
      }
    })();
    // Each append has 6 MiB, and at most 16 MiB wait for the copy.
    await until('three appends are acknowledged', () => acknowledged >= 3);
    // Stripping takes about as long as another append.
    await own.collection('others').insertMany(Array.from({ length: 7 }, () => ({ text })));
    assert.equal(acknowledged, 3);
    copy.open();
    await inTime('the remaining appends', appending);
    assert.equal((await readLocations(store)).length, 36);
  });

  test('all commits are eventually stripped, even if stripping starts late', async () => {
    await using client = await connect(target);
    const own = client.db(target.newDatabase());
    const strip = gate();
    const db = interceptedDb(own, (operation, call) => async (...args) => {
      if (operation === 'events_commits.bulkWrite') await strip.pass();
      return call(...args);
    });
    await using engine = await openMongo(db);
    const { store } = engine;
    strip.close();
    const count = 150;
    for (let index = 0; index < count; index += 1) {
      const expected = index === 0 ? 'none' : index - 1;
      await store.append(streamName('a'), [newEvent(`e-${index}`)], { expected });
    }
    strip.open();
    await inTime('closing', engine[Symbol.asyncDispose]());
    const commits = await own.collection('events_commits').find().toArray();
    assert.equal(commits.length, count);
    assert.deepEqual(
      commits.filter((commit) => 'events' in commit),
      [],
    );
  });

  for (const lost of [
    'events_commits.insertOne',
    'events.insertMany',
    'events_commits.bulkWrite',
    'events_types.insertMany',
    'events_commit_parts.insertOne',
  ]) {
    for (const expected of ['none', 'any'] as const) {
      test(`an append is stored once when the reply to ${lost} is lost, expected ${expected}`, async () => {
        await using client = await connect(target);
        const database = target.newDatabase();
        const network = losingAnswer(client.db(database), lost);
        await using engine = await openMongo(network.db);
        const { store } = engine;
        const stream = streamName('a');
        const payload = lost.includes('parts') ? { text: 'x'.repeat(900_000) } : {};
        const events = newEvents('e', 12).map((event) => ({ ...event, payload }));
        const { revision } = await store.append(stream, events, { expected });
        assert.equal(revision, 11);
        await store.append(stream, [newEvent('later')], { expected: 11 });
        const ids = (await readLocations(store)).map(({ eventId }) => eventId);
        assert.deepEqual(ids, [...events.map(({ eventId }) => eventId), 'later']);
        await engine[Symbol.asyncDispose]();
        assert.ok(network.isLost());
        await using again = await openMongo(client.db(database));
        assert.equal((await readLocations(again.store)).length, 13);
      });
    }
  }
});

/** Delays replies between `close` and `open`. */
function gate() {
  let reached = Promise.withResolvers<void>();
  let opened: PromiseWithResolvers<void> | undefined;
  return {
    close() {
      reached = Promise.withResolvers<void>();
      opened = Promise.withResolvers<void>();
    },
    reached: () => reached.promise,
    open() {
      opened?.resolve();
      opened = undefined;
    },
    async pass() {
      reached.resolve();
      await opened?.promise;
    },
  };
}

async function openPersistently(db: Db) {
  for (;;) {
    try {
      return await openMongo(db, { pollIntervalMs: 5 });
    } catch (error) {
      assert.match(String(error), /was lost/);
    }
  }
}
