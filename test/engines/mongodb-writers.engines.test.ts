// Many writers in several processes, some of them killed, and readers that must miss nothing.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { mongodbEventStore } from '../../src/adapters/mongodb/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { startPosition, type EventStore, type Position } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import {
  assertNoViolations,
  checkDelivered,
  checkStored,
  type EventPlace,
} from '../../src/testing/history.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import {
  createWorkspace,
  newEvent,
  newSeed,
  placeOf,
  readPlaces,
  streamName,
  type Workspace,
} from '../store/rig.ts';
import type { WriterInput, WriterMessage } from './mongodb-writer-main.ts';
import { onEachMongodb, onFerretdb, type MongodbTarget } from './mongodb-targets.ts';

const script = new URL('./mongodb-writer-main.ts', import.meta.url);
const isDone = (message: unknown): message is WriterMessage =>
  (message as WriterMessage).kind === 'done';
const hasWritten =
  (atLeast: number) =>
  (message: unknown): message is WriterMessage => {
    const said = message as WriterMessage;
    return said.kind === 'ok' && said.count >= atLeast;
  };

interface Run extends AsyncDisposable {
  readonly seed: number;
  readonly store: EventStore;
  start(name: string, more?: Partial<WriterInput>): Child;
  /** Nobody writes any more: what was told, stored and delivered must fit together. */
  check(): Promise<void>;
}

/** A store in a database of its own, and a reader that follows it from the beginning. */
async function newRun(target: MongodbTarget): Promise<Run> {
  const seed = newSeed();
  const database = target.newDatabase();
  const workspace: Workspace = await createWorkspace();
  const store = await mongodbEventStore(target.url(), { database, pollIntervalMs: 20 });
  const leaving = new AbortController();
  const delivered: EventPlace[] = [];
  const follow = async (after: Position): Promise<void> => {
    let last = after;
    try {
      const options = { after, signal: leaving.signal, pageSize: 50 };
      for await (const item of store.subscribe(options)) {
        last = item.position;
        if (item.kind === 'events') delivered.push(...item.events.map(placeOf));
      }
    } catch (error) {
      // The server is away: on from where we were.
      if (!hasCode(error, 'STORE_UNAVAILABLE')) throw error;
      await systemClock.sleep(20);
      await follow(last);
    }
  };
  const following = follow(startPosition);
  following.catch(() => undefined);

  return {
    seed,
    store,
    start(name, more = {}) {
      const history = join(workspace.folder, `${name}.history`);
      const input = { url: target.url(), database, history, name, seed, writers: 4, ...more };
      return startChild(script, { input: input satisfies WriterInput });
    },
    async check() {
      const title = `MILLRACE_SEED=${seed}`;
      const stored = await readPlaces(store);
      assert.ok(stored.length > 0);
      assertNoViolations(checkStored(await workspace.histories(), stored), title);
      for (const { position } of stored.slice(-1)) {
        while ((delivered.at(-1)?.position ?? '') < position) {
          await Promise.race([systemClock.sleep(5), following]);
        }
      }
      assertNoViolations(checkDelivered(stored, delivered), title);
      // Whoever comes later reads the same.
      await using later = await mongodbEventStore(target.url(), { database });
      assert.deepEqual(await readPlaces(later), stored);
    },
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await following;
      await store[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}

onEachMongodb('writers in several processes', (target) => {
  test('eight writers in two processes lose nothing, and a reader misses nothing', async () => {
    await using run = await newRun(target);
    const children = ['a', 'b'].map((name, index) =>
      run.start(name, { seed: run.seed + index, operations: 120 }),
    );
    for (const child of children) {
      await child.message(isDone);
      assert.equal(await child.ended, 0, child.errors());
    }
    await run.check();
  });

  test('a process among busier ones gets its turn', async () => {
    await using run = await newRun(target);
    await using busy = run.start('busy');
    await busy.message(hasWritten(10));
    for (let count = 0; count < 5; count += 1) {
      const stream = streamName(`quiet-${count % 2}`);
      await run.store.append(stream, [newEvent(`quiet-${count}`)]);
    }
    await busy.kill();
    assert.equal((await run.store.readStream(streamName('quiet-0')).toArray()).length, 3);
  });

  test('writers that are killed at any moment leave nothing by halves behind', async () => {
    await using run = await newRun(target);
    const random = seededRandom(run.seed);
    const kills = 6;
    await Promise.all(
      [0, 1].map(async (slot) => {
        for (let generation = 0; generation < kills; generation += 1) {
          const seed = run.seed + slot * 100 + generation;
          await using child = run.start(`w${slot}-${generation}`, { seed });
          await child.message(hasWritten(1 + random.below(15)));
          await systemClock.sleep(random.next() * 20);
          assert.equal(await child.kill(), 'SIGKILL', child.errors());
        }
      }),
    );
    await run.check();
  });

  test('writers that fall asleep at any moment and go on later do no harm', async () => {
    await using run = await newRun(target);
    const random = seededRandom(run.seed);
    const children = ['a', 'b', 'c'].map((name, index) =>
      run.start(name, { seed: run.seed + index, operations: 60, writers: 3 }),
    );
    let working = true;
    const disturbing = (async () => {
      while (working) {
        const { pid } = random.pick(children);
        try {
          process.kill(pid, 'SIGSTOP');
          await systemClock.sleep(random.next() * 100);
          process.kill(pid, 'SIGCONT');
        } catch {
          // It is done already.
        }
        await systemClock.sleep(random.next() * 50);
      }
    })();
    for (const child of children) {
      await child.message(isDone);
      assert.equal(await child.ended, 0, child.errors());
    }
    working = false;
    await disturbing;
    await run.check();
  });
});

onFerretdb('a server that is killed', (target) => {
  test('loses nothing that was acknowledged, and writers and readers go on', async () => {
    await using run = await newRun(target);
    const children = ['a', 'b'].map((name, index) => run.start(name, { seed: run.seed + index }));
    for (let kill = 1; kill <= 3; kill += 1) {
      await Promise.all(children.map((child) => child.message(hasWritten(kill * 10))));
      await target.server()?.kill();
      await target.server()?.start();
    }
    await Promise.all(children.map((child) => child.message(hasWritten(40))));
    for (const child of children) await child.kill();
    await run.check();
  });
});
