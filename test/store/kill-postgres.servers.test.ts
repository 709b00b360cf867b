import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { startPostgres, type PostgresServer } from '../../src/testing/servers/postgres-server.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { checkHistories, hasKind, killWriters, startWriter, whenQuiet } from './kill-writers.ts';
import { createWorkspace, newSeed, openStore, soakMinutes } from './rig.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ fsync: true });
});
after(() => server[Symbol.asyncDispose]());

test('what a killed process was told is in the database, once, whole and in its place', async () => {
  const endAt = performance.now() + (soakMinutes / 2) * 60_000;
  do {
    const seed = newSeed();
    const url = await server.createDatabase();
    await using workspace = await createWorkspace();
    const kills = 25;
    await killWriters({
      engine: 'postgres',
      url,
      workspace,
      seed,
      kills,
      writers: 2,
      transactionsPercent: 20,
    });
    await using store = await openStore('postgres', url);
    await whenQuiet(store);
    const acknowledged = await checkHistories(store, workspace, seed);
    assert.ok(acknowledged > 3 * kills, `only ${acknowledged} appends were acknowledged`);
  } while (performance.now() < endAt);
});

test('a server that is killed under its writers loses nothing, and they go on by themselves', async () => {
  const seed = newSeed();
  const random = seededRandom(seed);
  const url = await server.createDatabase();
  await using workspace = await createWorkspace();
  const plan = { streams: 12, inFlight: 8, transactionsPercent: 20 };
  await using writer = startWriter({
    engine: 'postgres',
    url,
    workspace,
    name: 'w',
    seed,
    ...plan,
  });
  await writer.message(hasKind('loaded'));
  writer.send('go');
  let acknowledged = 0;
  writer.onMessage((message) => {
    if (hasKind('ok')(message)) acknowledged = message.count;
  });
  const more = (count: number) => {
    const from = acknowledged;
    return writer.message(
      (message): message is unknown => hasKind('ok')(message) && message.count >= from + count,
    );
  };
  await more(20);
  const endAt = performance.now() + (soakMinutes / 2) * 60_000;
  let kills = 0;
  do {
    for (let kill = 0; kill < 4; kill += 1) {
      await systemClock.sleep(random.next() * 50);
      await server.kill();
      await server.start();
      // The same process, never started again, appends on.
      await more(20);
      kills += 1;
    }
  } while (performance.now() < endAt);
  assert.equal(await writer.kill(), 'SIGKILL', writer.errors());
  await using store = await openStore('postgres', url);
  await whenQuiet(store);
  assert.ok((await checkHistories(store, workspace, seed)) > 20 * kills);
});
