// Read models in the PostgreSQL schema of the event store, and appends that write documents in the same transaction.

import {
  documentsToWrite,
  hasMoved,
  InlineMoved,
  type InlineAppends,
} from '../../../projections/inline-appends.ts';
import { modelName, sqlReadModels, toStored } from '../../../projections/sql/read-models.ts';
import type {
  DocumentWrite,
  ModelKey,
  ReadModelStore,
  StoredDocument,
} from '../../../projections/read-model-store.ts';
import type { PostgresDatabase } from '../connection/database.ts';
import { postgresDocuments } from './documents.ts';

export function postgresReadModels(
  database: PostgresDatabase,
  onCommit: () => void,
): { readonly readModels: ReadModelStore; readonly inlineAppends: InlineAppends } {
  const { dialect, run, transact } = database;
  const documents = postgresDocuments(dialect);
  const models = dialect.table('read_models');
  const load = `select r.ordinal, d.id, d.stream, d.revision, d.document
    from ${dialect.rows('?2', { ordinal: 'bigint', tenant: 'text', id: 'text' })}
    join ${dialect.table('read_documents')} d on d.model = ?1 and d.tenant = r.tenant and d.id = r.id`;
  const numbers = new Map<string, number>();

  /** Commits a new number separately: other processes must not wait for it until a long transaction ends. */
  async function numberOf(model: ModelKey): Promise<number> {
    const name = modelName(model);
    let number = numbers.get(name);
    if (number === undefined) {
      await run([
        { sql: `insert into ${models} (name) values (?1) on conflict do nothing`, values: [name] },
      ]);
      const [[[id] = []] = []] = await run([
        { sql: `select id from ${models} where name = ?1`, values: [name] },
      ]);
      number = Number(id);
      numbers.set(name, number);
    }
    return number;
  }

  const inlineAppends: InlineAppends = {
    async commit({ revisions, documents: planned }, append) {
      const numbered: { readonly model: number; readonly writes: readonly DocumentWrite[] }[] = [];
      for (const { model, writes } of planned) {
        numbered.push({ model: await numberOf(model), writes });
      }
      try {
        const results = await transact(async (execute, client) => {
          const appended = await append(client);
          const outcomes = appended.map(({ isDuplicate, revision }) => ({
            kind: isDuplicate ? ('duplicate' as const) : ('appended' as const),
            revision,
          }));
          if (hasMoved(revisions, outcomes)) throw new InlineMoved();
          for (const { model, writes } of documentsToWrite(numbered, appended, outcomes)) {
            const written = await documents.write(execute, model, writes);
            if (written.includes('foreign')) throw new InlineMoved();
          }
          return appended;
        });
        onCommit();
        return results;
      } catch (error) {
        if (isMoved(error)) return undefined;
        throw error;
      }
    },
  };

  const readModels = sqlReadModels({
    dialect,
    run,
    async query(sql, values) {
      const [rows = []] = await run([{ sql, values }]);
      return rows;
    },
    async load(model, keys) {
      const found: (StoredDocument | undefined)[] = keys.map(() => undefined);
      const entries = keys.map(({ tenant, id }, ordinal) => ({ ordinal, tenant, id }));
      const values = [await numberOf(model), JSON.stringify(entries)];
      const [rows = []] = await run([{ sql: load, values }]);
      for (const [ordinal, ...row] of rows) found[Number(ordinal)] = toStored(row);
      return found;
    },
    async write(model, writes) {
      const number = await numberOf(model);
      return transact((execute) => documents.write(execute, number, writes));
    },
    async clear(model, limit) {
      const number = await numberOf(model);
      return transact((execute) => documents.clear(execute, number, limit));
    },
  });
  return { readModels, inlineAppends };
}

/** `transact` wraps the error as the cause of a `MillraceError`. */
function isMoved(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof InlineMoved;
}
