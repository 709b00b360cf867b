import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { readModelsConformance } from '../../../testing/conformance/projections/read-models.ts';
import { pageSql } from '../../../projections/sql/read-models.ts';
import { dialect } from '../connection/database.ts';
import { openSqlite } from '../open-sqlite.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
const path = join(folder, 'events.db');
const [db, second] = [await openSqlite(path), await openSqlite(path)];
after(async () => {
  await db[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

for (const { name, skip, run } of readModelsConformance({
  capabilities: db.readModels.capabilities,
  open: async () => db.readModels,
  second: async () => second.readModels,
  async damage(model, json) {
    using database = new DatabaseSync(path);
    const sql = `update read_documents set entries = ? where model = (select id from read_models where name = ?)`;
    database.prepare(sql).run(json, model);
  },
  async closed() {
    await using closed = await openSqlite(join(folder, 'closed.db'));
    return closed.readModels;
  },
})) {
  test(`read models in SQLite: ${name}`, { skip: skip ?? false }, run);
}

test('a page is read from the index without a sort, however many pages there are', () => {
  using database = new DatabaseSync(path);
  const { members, ascending, descending } = pageSql(dialect);
  const [inSet, inRange] = [
    ['m', 'core', 'open', '', 51],
    ['m', 'core', 'chat:c', 0, '', 0, 51],
  ];
  for (const [sql, values] of [
    [members, inSet],
    [ascending, inRange],
    [descending, inRange],
  ] as const) {
    const plan = database
      .prepare(`explain query plan ${sql}`)
      .all(...values)
      .map(({ detail }) => String(detail))
      .join('\n');
    assert.match(plan, /SEARCH r USING PRIMARY KEY \(model=\? AND tenant=\? AND name=\?/, plan);
    assert.match(plan, sql === members ? /AND id>\?/ : /\(score,id\)[<>]\(\?,\?\)/, plan);
    assert.match(plan, /SEARCH d USING INDEX \S+ \(model=\? AND tenant=\? AND id=\?\)/, plan);
    assert.doesNotMatch(plan, /SCAN [^e]|TEMP B-TREE/, plan);
  }
});
