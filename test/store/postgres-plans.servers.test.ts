// A connection keeps the query plans it made for a small store: they must suit a large store, too.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from './connect.ts';
import { newEvent, streamName, until } from './rig.ts';

test('an append looks its streams up by index, and never scans the tables', async () => {
  const { url } = await sharedPostgres();
  await using admin = await connect(url);
  const appends = 60;
  {
    await using db = await openPostgres(url, { connectionsMax: 1 });
    const { store } = db;
    for (let count = 0; count < appends; count += 1) {
      // The plans are made for the statistics of a small table.
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
  // The statistics of a session appear when it has ended.
  await until('the statistics have been updated', async () => {
    ({ rows } = await admin.query<Scans>(
      `select relname, n_tup_ins::integer as inserted, seq_scan::integer as scans
       from pg_stat_user_tables where relname in ('streams', 'events') order by relname`,
    ));
    return rows[0]?.inserted === appends * 3;
  });
  for (const { relname, scans } of rows) {
    // The migration scans a few times to build the indexes.
    assert.ok(scans < 10, `${relname} was scanned ${scans} times`);
  }
});
