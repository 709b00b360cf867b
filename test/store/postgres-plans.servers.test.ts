// A connection keeps its plans from the days when the store was small: they must suit a large one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresEventStore } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from './connect.ts';
import { newEvent, streamName, until } from './rig.ts';

test('an append looks its streams up, and never reads all of them', async () => {
  const { url } = await sharedPostgres();
  await using admin = await connect(url);
  const appends = 60;
  {
    await using store = await postgresEventStore(url, { connectionsMax: 1 });
    for (let count = 0; count < appends; count += 1) {
      // What a small table was analysed as, plans are made for.
      if (count === appends / 2) await admin.query('analyze');
      const streams = [streamName(count), streamName(count + 1)];
      const events = (stream: string) => [newEvent(`${count}:${stream}`)];
      await store.appendMany(streams.map((stream) => ({ stream, events: events(stream) })));
      await store.append(streamName(count), [newEvent(`${count}`)]);
    }
  }
  interface Scans {
    readonly relname: string;
    readonly inserted: number;
    readonly scans: number;
  }
  let rows: Scans[] = [];
  // The figures of a session are there once it has ended.
  await until('the figures are there', async () => {
    ({ rows } = await admin.query<Scans>(
      `select relname, n_tup_ins::integer as inserted, seq_scan::integer as scans
       from pg_stat_user_tables where relname in ('streams', 'events') order by relname`,
    ));
    return rows[0]?.inserted === appends * 3;
  });
  for (const { relname, scans } of rows) {
    // A few, by the migration: each index was built once.
    assert.ok(scans < 10, `${relname} was read as a whole ${scans} times`);
  }
});
