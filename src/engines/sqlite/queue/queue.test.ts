import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
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

const prefix = 'mq:{test}';
let files = 0;
for (const { name, run } of workQueueConformance({
  crossProcess: true,
  async open() {
    files += 1;
    const url = `sqlite:${folder}/queue-${files}.db`;
    return { prefix, queue: sqliteWorkQueue(url), second: async () => sqliteWorkQueue(url) };
  },
})) {
  test(`queues on SQLite: ${name}`, run);
}
for (const { name, skip, run } of workQueueConformance({
  crossProcess: false,
  open: async () => ({ prefix, queue: sqliteWorkQueue('memory:') }),
})) {
  test(`queues in memory: ${name}`, { skip: skip ?? false }, run);
}

test('a job has a lease of 15 s, which is renewed after 5 s while its handler runs', async () => {
  const clock = fakeClock();
  const path = `${folder}/lease.db`;
  await using queue = sqliteWorkQueue(`sqlite:${path}`, { clock });
  await queue.add('mails', [{ id: 'j-1', name: 'send', data: {} }]);
  const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
  const stopping = new AbortController();
  const working = queue.work(
    async () => {
      started.resolve();
      return gate.promise;
    },
    { queues: ['mails'], concurrency: 1, signal: stopping.signal },
  );
  await started.promise;
  using database = new DatabaseSync(path, { timeout: 30_000 });
  const leaseMs = (): number =>
    Number(database.prepare('select at_ms from work_jobs').get()?.['at_ms']) - clock.now();
  assert.equal(leaseMs(), 15_000);
  await clock.advance(4_999);
  assert.equal(leaseMs(), 10_001);
  await clock.advance(1);
  assert.equal(leaseMs(), 15_000);
  gate.resolve(undefined);
  stopping.abort();
  await working;
});

/** Starts a worker whose clock stands still, like that of a frozen process: it never renews the lease. */
function startFrozen(url: string, clock = fakeClock()) {
  const queue = sqliteWorkQueue(url, { clock });
  const [started, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
  const stopping = new AbortController();
  const working = queue.work(
    async () => {
      started.resolve();
      return gate.promise;
    },
    { queues: ['mails'], concurrency: 1, signal: stopping.signal },
  );
  return {
    queue,
    clock,
    started: started.promise,
    async finish() {
      gate.resolve(undefined);
      stopping.abort();
      await working;
      await queue[Symbol.asyncDispose]();
    },
  };
}

test('a job of a frozen worker is delivered again when its lease expires, and its late completion changes nothing', async () => {
  const url = `sqlite:${folder}/frozen.db`;
  const frozen = startFrozen(url);
  await frozen.queue.add('mails', [{ id: 'j-1', name: 'send', data: {} }]);
  await frozen.started;
  let now = frozen.clock.now() + 14_999;
  const clock = { now: () => now, sleep: async () => void (await new Promise(setImmediate)) };
  await using queue = sqliteWorkQueue(url, { clock });
  const stopping = new AbortController();
  const delivered: string[] = [];
  const done = queue.work(
    async ({ id }) => {
      delivered.push(id);
      stopping.abort();
      return { delayMs: 60_000 };
    },
    { queues: ['mails'], concurrency: 1, signal: stopping.signal },
  );
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(delivered, []);
  now += 1;
  await done;
  assert.deepEqual(delivered, ['j-1']);
  await frozen.finish();
  assert.equal(await queue.state('mails', 'j-1'), 'delayed');
});

test('an outcome that cannot be stored is stored when the file is usable again, and the job runs once', async () => {
  const clock = fakeClock();
  const path = `${folder}/unusable.db`;
  const [failed, resumed] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const unexpected = (_fields: object, message: string): never => assert.fail(message);
  const warn = (_fields: object, message: string): void => failed.resolve(message);
  const info = (_fields: object, message: string): void => resumed.resolve(message);
  const observer = { log: { debug: unexpected, info, warn, error: unexpected } };
  await using queue = sqliteWorkQueue(`sqlite:${path}`, { clock, observer });
  using database = new DatabaseSync(path, { timeout: 30_000 });
  await queue.add('mails', [{ id: 'j-1', name: 'send', data: {} }]);
  const stopping = new AbortController();
  let runs = 0;
  const working = queue.work(
    async () => {
      runs += 1;
      database.exec('alter table work_jobs rename to unusable');
      return undefined;
    },
    { queues: ['mails'], concurrency: 1, signal: stopping.signal },
  );
  assert.equal(await failed.promise, 'queue worker failed');
  database.exec('alter table unusable rename to work_jobs');
  await clock.advance(1_000);
  assert.equal(await resumed.promise, 'queue worker resumed');
  assert.equal(await queue.state('mails', 'j-1'), 'completed');
  stopping.abort();
  await working;
  assert.equal(runs, 1);
});
