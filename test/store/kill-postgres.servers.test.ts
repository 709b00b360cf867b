import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { startPostgres, type PostgresServer } from '../../src/testing/servers/postgres-server.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { whenClientsGone } from './connect.ts';
import { checkHistories, hasKind, killWriters, startWriter } from './kill-writers.ts';
import { createWorkspace, inRounds, openStore, soakMinutes } from './rig.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ fsync: true });
});
after(() => server[Symbol.asyncDispose]());

test('events acknowledged to a killed process are in PostgreSQL once, complete and in order', () =>
  inRounds(async (seed) => {
    const url = await server.createDatabase();
    await using workspace = await createWorkspace();
    const plan = { kills: soakMinutes > 0 ? 25 : 2, writers: 2, transactionsPercent: 20 };
    const reported = await killWriters({ engine: 'postgres', url, workspace, seed, ...plan });
    await whenClientsGone(url);
    await using store = await openStore('postgres', url);
    const acknowledged = await checkHistories(store, workspace, seed);
    assert.ok(acknowledged >= reported, `${acknowledged} of ${reported} acknowledged appends`);
  }));

test('a server that is killed while writers append loses nothing, and the writers continue', () =>
  inRounds(async (seed) => {
    const random = seededRandom(seed);
    const url = await server.createDatabase();
    await using workspace = await createWorkspace();
    const plan = { streams: 12, inFlight: 8, transactionsPercent: 20 };
    const own = { workspace, name: 'w', seed };
    await using writer = startWriter({ engine: 'postgres', url, ...own, ...plan });
    await writer.message(hasKind('loaded'));
    writer.send('go');
    let acknowledged = 0;
    writer.onMessage((message) => {
      if (hasKind('ok')(message)) acknowledged = message.count;
    });
    const more = (count: number): Promise<unknown> => {
      const enough = acknowledged + count;
      return writer.message(
        (message): message is unknown => hasKind('ok')(message) && message.count >= enough,
      );
    };
    await more(20);
    const kills = soakMinutes > 0 ? 4 : 1;
    for (let kill = 0; kill < kills; kill += 1) {
      await systemClock.sleep(random.next() * 50);
      await server.kill();
      await server.start();
      // The process that lost its connection continues to append.
      await more(20);
    }
    assert.equal(await writer.kill(), 'SIGKILL', writer.errors());
    await whenClientsGone(url);
    await using store = await openStore('postgres', url);
    assert.ok((await checkHistories(store, workspace, seed)) > 20 * kills);
  }));
