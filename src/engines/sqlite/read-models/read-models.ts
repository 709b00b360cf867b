// Read models in the file of the events: written by the writer thread, read on the calling thread.

import type { InlinePlan } from '../../../projections/inline-appends.ts';
import { modelName, sqlReadModels, toStored } from '../../../projections/sql/read-models.ts';
import type { ReadModelStore } from '../../../projections/read-model-store.ts';
import type { SqlCells } from '../../../store/sql-database.ts';
import type { SqliteFile } from '../connection/file.ts';
import type { InlineWrites } from '../thread/protocol.ts';

const load = `select d.id, d.stream, d.revision, d.document
  from read_documents d join read_models m on m.id = d.model
  where m.name = ? and d.tenant = ? and d.id = ?`;

export function sqliteReadModels({ writer, database, reading }: SqliteFile): ReadModelStore {
  return sqlReadModels({
    dialect: database.dialect,
    run: database.run,
    query: (sql, values) =>
      reading((reader) => reader.query(sql, values) as unknown as readonly SqlCells[]),
    load: (model, keys) =>
      reading((reader) => {
        const name = modelName(model);
        return keys.map(({ tenant, id }) => {
          const [row] = reader.query(load, [name, tenant, id]) as unknown as readonly SqlCells[];
          return row === undefined ? undefined : toStored(row);
        });
      }),
    async write(model, writes) {
      const name = modelName(model);
      const outcomes = await writer.call({ operation: 'documents.write', model: name, writes });
      if (writes.some(({ isErasure }) => isErasure)) await writer.call({ operation: 'log.erase' });
      return outcomes;
    },
    clear: async (model, limit) =>
      writer.call({ operation: 'documents.clear', model: modelName(model), limit }),
  });
}

export function inlineWrites({ revisions, documents }: InlinePlan): InlineWrites {
  return {
    revisions,
    documents: documents.map(({ model, writes }) => ({ model: modelName(model), writes })),
  };
}
