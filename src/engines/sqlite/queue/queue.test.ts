import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { keyStoreConformance } from '../../../testing/conformance/work/key-store.ts';
import { workQueueConformance } from '../../../testing/conformance/work/work-queue.ts';
import { sqliteKeyStore } from '../keys/key-store.ts';
import { sqliteWorkQueue } from './queue.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-work-'));
after(() => rm(folder, { recursive: true, force: true }));

const [keys, second] = [
  sqliteKeyStore(`sqlite:${folder}/keys.db`),
  sqliteKeyStore(`sqlite:${folder}/keys.db`),
];
after(async () => {
  await keys[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});
for (const { name, run } of keyStoreConformance({ keys, second })) {
  test(`keys on SQLite: ${name}`, run);
}

let files = 0;
for (const { name, run } of workQueueConformance({
  async open() {
    files += 1;
    const url = `sqlite:${folder}/queue-${files}.db`;
    const one = () => sqliteWorkQueue(url, { name: 'mails', pollIntervalMs: 5 });
    return { queue: one(), second: async () => one() };
  },
})) {
  test(`a queue on SQLite: ${name}`, run);
}

test('claims a job of a dead process again when its lease expires, and not before', async () => {
  const clock = fakeClock();
  const url = `sqlite:${folder}/died.db`;
  const died = sqliteWorkQueue(url, { name: 'mails', leaseMs: 30_000, clock });
  await died.add({ id: 'j-1', name: 'send', data: {} });
  const taken = Promise.withResolvers<void>();
  const killed = new AbortController();
  // The handler never returns, and its lease is never renewed, because its clock stands still.
  void died.work(
    async () => {
      taken.resolve();
      await new Promise(() => undefined);
      return undefined;
    },
    { concurrency: 1, signal: killed.signal },
  );
  await taken.promise;
  let now = clock.now() + 29_000;
  const later = { now: () => now, sleep: async () => void (await new Promise(setImmediate)) };
  await using queue = sqliteWorkQueue(url, { name: 'mails', leaseMs: 30_000, clock: later });
  const stopping = new AbortController();
  const handed: string[] = [];
  const done = queue.work(
    async ({ id }) => {
      handed.push(id);
      stopping.abort();
      return undefined;
    },
    { concurrency: 1, signal: stopping.signal },
  );
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(handed, []);
  now += 1_001;
  await done;
  assert.deepEqual(handed, ['j-1']);
});
