// One run: a store in a separate database, writers in separate processes, and a reader that follows the
// store from the start. The checks follow the last write.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import {
  assertNoViolations,
  checkDelivered,
  checkStored,
  type EventLocation,
} from '../../src/testing/history.ts';
import {
  createWorkspace,
  newSeed,
  locationOf,
  readLocations,
  until,
  type Workspace,
} from '../store/rig.ts';
import type { WriterInput, WriterMessage } from './mongodb-writer-main.ts';
import type { MongodbTarget } from '../../src/testing/support/mongodb/mongodb-targets.ts';

export interface MongodbRun extends AsyncDisposable {
  readonly seed: number;
  readonly database: string;
  readonly workspace: Workspace;
  readonly store: EventStore;
  start(name: string, more?: Partial<WriterInput>): Child;
  /** Call it after the last write: checks that acknowledged, stored and delivered events agree. */
  check(): Promise<void>;
}

const script = new URL('./mongodb-writer-main.ts', import.meta.url);

export async function newRun(target: MongodbTarget, seed = newSeed()): Promise<MongodbRun> {
  const database = target.newDatabase();
  const workspace = await createWorkspace();
  const engine = await openMongo(target.url(), { database, pollIntervalMs: 20 });
  const { store } = engine;
  const leaving = new AbortController();
  const delivered: EventLocation[] = [];
  // The subscription must continue through every outage.
  const following = (async () => {
    for await (const item of store.subscribe({ signal: leaving.signal, pageSize: 50 })) {
      if (item.kind === 'events') delivered.push(...item.events.map(locationOf));
    }
  })();
  following.catch(() => undefined);

  return {
    seed,
    database,
    workspace,
    store,
    start(name, more = {}) {
      const history = join(workspace.folder, `${name}.history`);
      const input = { url: target.url(), database, history, name, seed, writers: 4, ...more };
      return startChild(script, { input: input satisfies WriterInput });
    },
    async check() {
      const title = `MILLRACE_SEED=${seed}`;
      const stored = await readLocations(store);
      assert.ok(stored.length > 0);
      assertNoViolations(checkStored(await workspace.histories(), stored), title);
      const last = stored.at(-1)?.position ?? '';
      const hasLast = (): boolean => (delivered.at(-1)?.position ?? '') >= last;
      await Promise.race([until('all events are delivered', hasLast), following]);
      assertNoViolations(checkDelivered(stored, delivered), title);
      // A store that is opened later reads the same events.
      await using later = await openMongo(target.url(), { database });
      assert.deepEqual(await readLocations(later.store), stored);
    },
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await following;
      await engine[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}

export function isLoaded(message: unknown): message is WriterMessage {
  return (message as WriterMessage).kind === 'loaded';
}

export function isDone(message: unknown): message is WriterMessage {
  return (message as WriterMessage).kind === 'done';
}

export function hasWritten(atLeast: number) {
  return (message: unknown): message is WriterMessage => {
    const report = message as WriterMessage;
    return report.kind === 'ok' && report.count >= atLeast;
  };
}
