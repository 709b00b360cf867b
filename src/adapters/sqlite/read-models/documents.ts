// Documents inside the writer's transaction: compare, replace, and keep their entries in step.

import type { DatabaseSync } from 'node:sqlite';
import { changeEntries, decideDocument, noEntries } from '../../../projections/decide-document.ts';
import type {
  DocumentEntries,
  DocumentOutcome,
  DocumentWrite,
} from '../../../projections/read-model-store.ts';

/** Writes of one model. */
export interface ModelWrites {
  readonly model: string;
  readonly writes: readonly DocumentWrite[];
}

export interface SqliteDocuments {
  write(writes: ModelWrites): readonly DocumentOutcome[];
  /** Removes up to so many; returns how many. */
  clear(model: string, limit: number): number;
  /** After a rollback, models that it had added are not there any more. */
  forgetNames(): void;
}

type Kept = readonly [rowid: number, stream: string, revision: number, entries: string];

export function createSqliteDocuments(database: DatabaseSync): SqliteDocuments {
  const prepare = (sql: string) => database.prepare(sql);
  const insertModel = prepare('insert or ignore into read_models (name) values (?)');
  const selectModel = prepare('select id from read_models where name = ?');
  const selectKept = prepare(
    `select rowid, stream, revision, entries from read_documents
     where model = ? and tenant = ? and id = ?`,
  );
  selectKept.setReturnArrays(true);
  const insert = prepare(
    `insert into read_documents (model, tenant, id, stream, revision, document, entries)
     values (?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = prepare(
    'update read_documents set revision = ?, document = ?, entries = ? where rowid = ?',
  );
  const addIndex = prepare(
    `insert into read_indexes (model, tenant, name, value, id) values (?, ?, ?, ?, ?)
     on conflict do update set id = excluded.id`,
  );
  const removeIndex = prepare(
    'delete from read_indexes where model = ? and tenant = ? and name = ? and value = ? and id = ?',
  );
  const addSet = prepare(
    'insert or ignore into read_sets (model, tenant, name, id) values (?, ?, ?, ?)',
  );
  const removeSet = prepare(
    'delete from read_sets where model = ? and tenant = ? and name = ? and id = ?',
  );
  const addRange = prepare(
    'insert or ignore into read_ranges (model, tenant, name, score, id) values (?, ?, ?, ?, ?)',
  );
  const removeRange = prepare(
    'delete from read_ranges where model = ? and tenant = ? and name = ? and score = ? and id = ?',
  );
  const count = prepare(
    `insert into read_generations (model, tenant, generation) values (?, ?, 1)
     on conflict do update set generation = generation + 1`,
  );
  const selectSome = prepare(
    'select rowid, tenant, id, entries from read_documents where model = ? limit ?',
  );
  const remove = prepare('delete from read_documents where rowid = ?');
  const removeLists = prepare('delete from read_lists where model = ?');
  const ids = new Map<string, number>();

  function modelId(name: string): number {
    const known = ids.get(name);
    if (known !== undefined) return known;
    insertModel.run(name);
    const id = Number(selectModel.get(name)?.['id']);
    ids.set(name, id);
    return id;
  }

  function writeOne(model: number, write: DocumentWrite): DocumentOutcome {
    const { tenant, id, stream, revision, document } = write;
    const kept = selectKept.get(model, tenant, id) as unknown as Kept | undefined;
    const entries = JSON.stringify(write.entries);
    if (kept === undefined) {
      insert.run(model, tenant, id, stream, revision, document, entries);
      enter({ model, tenant, id }, write.entries);
      return 'written';
    }
    const outcome = decideDocument({ stream: kept[1], revision: kept[2] }, write);
    if (outcome !== 'written') return outcome;
    update.run(revision, document, entries, kept[0]);
    const { removed, added } = changeEntries(JSON.parse(kept[3]) as DocumentEntries, write.entries);
    leave({ model, tenant, id }, removed);
    enter({ model, tenant, id }, added);
    return outcome;
  }

  interface Key {
    readonly model: number;
    readonly tenant: string;
    readonly id: string;
  }

  function enter({ model, tenant, id }: Key, { indexes, sets, ranges }: DocumentEntries): void {
    for (const name in indexes) addIndex.run(model, tenant, name, indexes[name] as string, id);
    for (const name of sets) if (name !== 'all') addSet.run(model, tenant, name, id);
    for (const name in ranges) addRange.run(model, tenant, name, ranges[name] as number, id);
  }

  function leave({ model, tenant, id }: Key, { indexes, sets, ranges }: DocumentEntries): void {
    for (const name in indexes) removeIndex.run(model, tenant, name, indexes[name] as string, id);
    for (const name of sets) if (name !== 'all') removeSet.run(model, tenant, name, id);
    for (const name in ranges) removeRange.run(model, tenant, name, ranges[name] as number, id);
  }

  return {
    write({ model: name, writes }) {
      const model = modelId(name);
      const tenants = new Set<string>();
      const outcomes = writes.map((write) => {
        const outcome = writeOne(model, write);
        if (outcome === 'written') tenants.add(write.tenant);
        return outcome;
      });
      for (const tenant of tenants) count.run(model, tenant);
      return outcomes;
    },
    clear(name, limit) {
      const model = modelId(name);
      const rows = selectSome.all(model, limit);
      for (const row of rows) {
        const key = { model, tenant: String(row['tenant']), id: String(row['id']) };
        const entries = JSON.parse(String(row['entries'])) as DocumentEntries;
        leave(key, changeEntries(entries, noEntries).removed);
        remove.run(Number(row['rowid']));
      }
      for (const tenant of new Set(rows.map((row) => String(row['tenant'])))) {
        count.run(model, tenant);
      }
      if (rows.length === 0) removeLists.run(model);
      return rows.length;
    },
    forgetNames: () => ids.clear(),
  };
}
