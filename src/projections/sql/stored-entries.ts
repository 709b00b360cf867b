// The index entries of a document as stored next to it. If that record was damaged, the index tables have the entries.

import { parseStored } from '../../foundation/parse-json.ts';
import type { SqlCells, SqlDialect } from '../../store/sql-database.ts';
import type { DocumentEntries } from '../read-model-store.ts';

/** Undefined: the stored record was damaged. */
export function readEntries(json: unknown): DocumentEntries | undefined {
  const { indexes, sets, ranges } = Object(parseStored(json)) as Partial<DocumentEntries>;
  const isWhole = indexes !== undefined && Array.isArray(sets) && ranges !== undefined;
  return isWhole ? { indexes, sets, ranges } : undefined;
}

/** ?1: model; ?2: tenant; ?3: id. No index of these tables begins with the id, so this reads all entries of a tenant. */
export function indexedEntriesSql(table: SqlDialect['table']): string {
  const ofDocument = 'e where e.model = ?1 and e.tenant = ?2 and e.id = ?3';
  return `select 'index', e.name, e.value, 0.0 from ${table('read_indexes')} ${ofDocument}
    union all select 'set', e.name, '', 0.0 from ${table('read_sets')} ${ofDocument}
    union all select 'range', e.name, '', e.score from ${table('read_ranges')} ${ofDocument}`;
}

export function toEntries(rows: readonly SqlCells[]): DocumentEntries {
  const of = (kind: string): readonly SqlCells[] => rows.filter(([each]) => each === kind);
  return {
    indexes: Object.fromEntries(of('index').map(([, name, value]) => [name, String(value)])),
    sets: of('set').map(([, name]) => String(name)),
    ranges: Object.fromEntries(of('range').map(([, name, , score]) => [name, Number(score)])),
  };
}
