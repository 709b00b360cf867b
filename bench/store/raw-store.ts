// The limit of an event store on these engines: bare inserts, one commit per append, and only a unique
// index to check the revision.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { countRows } from './databases.ts';
import type { SampleEvent } from './sample-events.ts';
import type { Appending, Engine } from './subject-store.ts';

const table = 'raw_events';

export function openRaw(engine: Engine, address: string): Promise<Appending> {
  return engine === 'sqlite' ? openRawSqlite(address) : openRawPostgres(address);
}

async function openRawSqlite(path: string): Promise<Appending> {
  const database = new DatabaseSync(path);
  database.exec(`
    pragma journal_mode = wal;
    pragma synchronous = full;
    create table ${table} (
      position integer primary key, stream text not null, revision integer not null,
      id text not null, type text not null, data text not null, metadata text not null,
      unique (stream, revision)
    ) strict;
  `);
  const begin = database.prepare('begin immediate');
  const insert = database.prepare(
    `insert into ${table} (stream, revision, id, type, data, metadata) values (?, ?, ?, ?, ?, ?)`,
  );
  const commit = database.prepare('commit');
  return {
    async append(stream, there, events) {
      begin.run();
      for (const [index, { id, type, data, metadata }] of events.entries()) {
        const json = [JSON.stringify(data), JSON.stringify(metadata)];
        insert.run(stream, there + index, id, type, ...json);
      }
      commit.run();
    },
    count: () => countRows('sqlite', path, table),
    close: async () => database.close(),
  };
}

async function openRawPostgres(url: string): Promise<Appending> {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`
    create table ${table} (
      position bigint generated always as identity primary key, stream text not null,
      revision bigint not null, id text not null, type text not null, data json not null,
      metadata json not null, unique (stream, revision)
    )`);
  const insert = {
    name: 'insert',
    text: `insert into ${table} (stream, revision, id, type, data, metadata)
           select $1, $2 + ord - 1, id, type, data, metadata
           from unnest($3::text[], $4::text[], $5::json[], $6::json[])
             with ordinality e(id, type, data, metadata, ord)`,
  };
  return {
    append: (stream, there, events) =>
      pool.query({ ...insert, values: [stream, there, ...columnsOf(events)] }),
    count: () => countRows('postgres', url, table),
    close: () => pool.end(),
  };
}

function columnsOf(events: readonly SampleEvent[]): string[][] {
  return [
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ data }) => JSON.stringify(data)),
    events.map(({ metadata }) => JSON.stringify(metadata)),
  ];
}
