// Documents inside the writer's transaction: compare, replace, and update their index entries.

import type { DatabaseSync } from 'node:sqlite';
import {
  changeEntries,
  decideDocument,
  noEntries,
} from '../../../projections/rules/decide-document.ts';
import {
  indexedEntriesSql,
  readEntries,
  toEntries,
} from '../../../projections/sql/stored-entries.ts';
import type { SqlCells } from '../../../store/sql-database.ts';
import type {
  DocumentEntries,
  DocumentOutcome,
  DocumentWrite,
} from '../../../projections/read-model-store.ts';
import type { Handlers, Operation } from '../thread/protocol.ts';

/** The writes of one read model. */
export interface ModelWrites {
  readonly model: string;
  readonly writes: readonly DocumentWrite[];
}

export interface DocumentOperations {
  readonly 'documents.write': Operation<ModelWrites, readonly DocumentOutcome[]>;
  /** Removes at most `limit` documents; returns their number. */
  readonly 'documents.clear': Operation<{ readonly model: string; readonly limit: number }, number>;
}

export interface Documents {
  readonly handlers: Handlers<DocumentOperations>;
  /** Call it after a rollback, which may have removed cached model ids. */
  clearCache(): void;
}

type StoredCells = readonly [rowid: number, stream: string, revision: number, entries: string];

export function createDocuments(database: DatabaseSync): Documents {
  const prepare = (sql: string) => database.prepare(sql);
  const insertModel = prepare('insert or ignore into read_models (name) values (?)');
  const selectModel = prepare('select id from read_models where name = ?');
  const selectStored = prepare(
    `select rowid, stream, revision, entries from read_documents
     where model = ? and tenant = ? and id = ?`,
  );
  selectStored.setReturnArrays(true);
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
  const countWrite = prepare(
    `insert into read_generations (model, tenant, generation) values (?, ?, 1)
     on conflict do update set generation = generation + 1`,
  );
  const selectSome = prepare(
    'select rowid, tenant, id, entries from read_documents where model = ? limit ?',
  );
  const selectEntries = prepare(indexedEntriesSql((name) => name));
  selectEntries.setReturnArrays(true);
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
    const stored = selectStored.get(model, tenant, id) as unknown as StoredCells | undefined;
    const entries = JSON.stringify(write.entries);
    if (stored === undefined) {
      insert.run(model, tenant, id, stream, revision, document, entries);
      addEntries({ model, tenant, id }, write.entries);
      return 'written';
    }
    const outcome = decideDocument({ stream: stored[1], revision: stored[2] }, write);
    if (outcome !== 'written') return outcome;
    update.run(revision, document, entries, stored[0]);
    const before = entriesOf({ model, tenant, id }, stored[3]);
    const { removed, added } = changeEntries(before, write.entries);
    removeEntries({ model, tenant, id }, removed);
    addEntries({ model, tenant, id }, added);
    return outcome;
  }

  interface Key {
    readonly model: number;
    readonly tenant: string;
    readonly id: string;
  }

  function entriesOf({ model, tenant, id }: Key, json: unknown): DocumentEntries {
    return (
      readEntries(json) ??
      toEntries(selectEntries.all(model, tenant, id) as unknown as readonly SqlCells[])
    );
  }

  function addEntries(
    { model, tenant, id }: Key,
    { indexes, sets, ranges }: DocumentEntries,
  ): void {
    for (const name in indexes) addIndex.run(model, tenant, name, indexes[name] as string, id);
    for (const name of sets) if (name !== 'all') addSet.run(model, tenant, name, id);
    for (const name in ranges) addRange.run(model, tenant, name, ranges[name] as number, id);
  }

  function removeEntries(
    { model, tenant, id }: Key,
    { indexes, sets, ranges }: DocumentEntries,
  ): void {
    for (const name in indexes) removeIndex.run(model, tenant, name, indexes[name] as string, id);
    for (const name of sets) if (name !== 'all') removeSet.run(model, tenant, name, id);
    for (const name in ranges) removeRange.run(model, tenant, name, ranges[name] as number, id);
  }

  const handlers: Handlers<DocumentOperations> = {
    'documents.write': ({ model: name, writes }) => {
      const model = modelId(name);
      const tenants = new Set<string>();
      const outcomes = writes.map((write) => {
        const outcome = writeOne(model, write);
        if (outcome === 'written') tenants.add(write.tenant);
        return outcome;
      });
      for (const tenant of tenants) countWrite.run(model, tenant);
      return outcomes;
    },
    'documents.clear': ({ model: name, limit }) => {
      const model = modelId(name);
      const rows = selectSome.all(model, limit);
      for (const row of rows) {
        const key = { model, tenant: String(row['tenant']), id: String(row['id']) };
        const entries = entriesOf(key, row['entries']);
        removeEntries(key, changeEntries(entries, noEntries).removed);
        remove.run(Number(row['rowid']));
      }
      for (const tenant of new Set(rows.map((row) => String(row['tenant'])))) {
        countWrite.run(model, tenant);
      }
      if (rows.length === 0) removeLists.run(model);
      return rows.length;
    },
  };
  return { handlers, clearCache: () => ids.clear() };
}
