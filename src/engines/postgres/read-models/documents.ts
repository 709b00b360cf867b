// Writes documents inside a transaction: one statement compares and replaces all of them, two more update their
// index entries.

import { changeEntries, noEntries } from '../../../projections/rules/decide-document.ts';
import {
  indexedEntriesSql,
  readEntries,
  toEntries,
} from '../../../projections/sql/stored-entries.ts';
import type {
  DocumentEntries,
  DocumentKey,
  DocumentOutcome,
  DocumentWrite,
} from '../../../projections/read-model-store.ts';
import type { SqlDialect } from '../../../store/sql-database.ts';
import type { Execute } from '../connection/database.ts';

export interface PostgresDocuments {
  /** `model` is the number of the read model in the table `read_models`. */
  write(
    execute: Execute,
    model: number,
    writes: readonly DocumentWrite[],
  ): Promise<readonly DocumentOutcome[]>;
  clear(execute: Execute, model: number, limit: number): Promise<number>;
}

interface Change extends DocumentKey {
  readonly entries: DocumentEntries;
}

export function postgresDocuments({ table, rows }: SqlDialect): PostgresDocuments {
  const [documents, generations] = [table('read_documents'), table('read_generations')];
  const [indexes, sets, ranges] = [table('read_indexes'), table('read_sets'), table('read_ranges')];
  const entry = { tenant: 'text', name: 'text', id: 'text' } as const;
  const [indexRows, setRows, rangeRows] = [
    rows('?2', { ...entry, value: 'text' }),
    rows('?3', entry),
    rows('?4', { ...entry, score: 'double precision' }),
  ];
  const model = 'cast(?1 as integer)';
  const count = (
    from: string,
  ): string => `insert into ${generations} as g (model, tenant, generation)
    select ${model}, t.tenant, 1 from (select distinct tenant from ${from} order by tenant) t
    on conflict (model, tenant) do update set generation = g.generation + 1`;
  const ofRow = 'e.model = ?1 and e.tenant = r.tenant and e.name = r.name and e.id = r.id';
  const put = (isOlder: string): string => `with applied as (
        insert into ${documents} as d (model, tenant, id, stream, revision, document, entries)
        select ${model}, r.tenant, r.id, r.stream, r.revision, r.document, r.entries
        from ${rows('?2', { tenant: 'text', id: 'text', stream: 'text', revision: 'bigint', document: 'text', entries: 'text' })}
        order by r.tenant, r.id
        on conflict (model, tenant, id) do update set revision = excluded.revision,
          document = excluded.document, entries = excluded.entries, previous = d.entries
        where ${isOlder} and d.stream = excluded.stream
        returning d.tenant, d.id, d.previous),
      counted as (${count('applied')})
      select tenant, id, previous from applied`;
  const sql = {
    // Every process locks documents in this order and then the generation of the tenant, which prevents deadlocks.
    put: put('d.revision < excluded.revision'),
    erase: put('d.revision <= excluded.revision'),
    erasePrevious: `update ${documents} d set previous = null
      from ${rows('?2', { tenant: 'text', id: 'text' })}
      where d.model = ?1 and d.tenant = r.tenant and d.id = r.id`,
    streams: `select d.tenant, d.id, d.stream from ${rows('?2', { tenant: 'text', id: 'text' })}
      join ${documents} d on d.model = ?1 and d.tenant = r.tenant and d.id = r.id`,
    removeEntries: `with i as (delete from ${indexes} e using ${indexRows} where ${ofRow} and e.value = r.value),
      s as (delete from ${sets} e using ${setRows} where ${ofRow})
      delete from ${ranges} e using ${rangeRows} where ${ofRow} and e.score = r.score`,
    // If two documents have the same value, the last one owns the index entry.
    addEntries: `with i as (
        insert into ${indexes} (model, tenant, name, value, id)
        select distinct on (r.tenant, r.name, r.value) ${model}, r.tenant, r.name, r.value, r.id
        from ${rows('?2', { ...entry, value: 'text', ordinal: 'bigint' })}
        order by r.tenant, r.name, r.value, r.ordinal desc
        on conflict (model, tenant, name, value) do update set id = excluded.id),
      s as (
        insert into ${sets} (model, tenant, name, id)
        select ${model}, r.tenant, r.name, r.id from ${setRows} on conflict do nothing)
      insert into ${ranges} (model, tenant, name, score, id)
      select ${model}, r.tenant, r.name, r.score, r.id from ${rangeRows} on conflict do nothing`,
    clear: `with deleted as (
        delete from ${documents} where (model, tenant, id) in (
          select model, tenant, id from ${documents} where model = ?1 limit ?2 for update)
        returning tenant, id, entries),
      counted as (${count('deleted')})
      select tenant, id, entries from deleted`,
    entries: indexedEntriesSql(table),
    clearLists: `delete from ${table('read_lists')} where model = ?1`,
  };

  async function entriesOf(
    execute: Execute,
    values: readonly [model: number, tenant: string, id: string],
    json: unknown,
  ): Promise<DocumentEntries> {
    return readEntries(json) ?? toEntries(await execute({ sql: sql.entries, values }));
  }

  async function apply(
    execute: Execute,
    { text, number, changes }: { text: string; number: number; changes: readonly Change[] },
  ): Promise<void> {
    const entryRows = [
      changes.flatMap(({ tenant, id, entries }, ordinal) =>
        Object.entries(entries.indexes).map(([name, value]) => ({
          tenant,
          id,
          name,
          value,
          ordinal,
        })),
      ),
      changes.flatMap(({ tenant, id, entries }) =>
        entries.sets.filter((name) => name !== 'all').map((name) => ({ tenant, id, name })),
      ),
      changes.flatMap(({ tenant, id, entries }) =>
        Object.entries(entries.ranges).map(([name, score]) => ({ tenant, id, name, score })),
      ),
    ];
    if (entryRows.every((rowsOfKind) => rowsOfKind.length === 0)) return;
    const values = [number, ...entryRows.map((rowsOfKind) => JSON.stringify(rowsOfKind))];
    await execute({ sql: text, values });
  }

  return {
    async write(execute, number, writes) {
      const documentRows = writes.map(({ entries, ...rest }) => ({
        ...rest,
        entries: JSON.stringify(entries),
      }));
      const applied = new Map<string, DocumentEntries>();
      const values = [number, JSON.stringify(documentRows)];
      const isErasure = writes.some((write) => write.isErasure);
      const text = isErasure ? sql.erase : sql.put;
      for (const [tenant, id, previous] of await execute({ sql: text, values })) {
        const before =
          previous === null
            ? noEntries
            : await entriesOf(execute, [number, String(tenant), String(id)], previous);
        applied.set(`${tenant} ${id}`, before);
      }
      const written = writes.filter(({ tenant, id }) => applied.has(`${tenant} ${id}`));
      const changes = written.map(({ tenant, id, entries }) => {
        const before = applied.get(`${tenant} ${id}`) ?? noEntries;
        return { tenant, id, ...changeEntries(before, entries) };
      });
      const removed = changes.map((change) => ({ ...change, entries: change.removed }));
      const added = changes.map((change) => ({ ...change, entries: change.added }));
      await apply(execute, { text: sql.removeEntries, number, changes: removed });
      await apply(execute, { text: sql.addEntries, number, changes: added });
      if (isErasure) await execute({ sql: sql.erasePrevious, values });
      if (written.length === writes.length) return writes.map(() => 'written');
      const streams = new Map<string, string>();
      const rejected = writes.filter(({ tenant, id }) => !applied.has(`${tenant} ${id}`));
      const keys = JSON.stringify(rejected.map(({ tenant, id }) => ({ tenant, id })));
      const existing = await execute({ sql: sql.streams, values: [number, keys] });
      for (const [tenant, id, stream] of existing) streams.set(`${tenant} ${id}`, String(stream));
      return writes.map(({ tenant, id, stream }) => {
        const key = `${tenant} ${id}`;
        if (applied.has(key)) return 'written';
        return streams.get(key) === stream ? 'stale' : 'foreign';
      });
    },
    async clear(execute, number, limit) {
      const deleted = await execute({ sql: sql.clear, values: [number, limit] });
      const changes: Change[] = [];
      for (const [tenantCell, idCell, json] of deleted) {
        const [tenant, id] = [String(tenantCell), String(idCell)];
        const entries = await entriesOf(execute, [number, tenant, id], json);
        changes.push({ tenant, id, entries });
      }
      await apply(execute, { text: sql.removeEntries, number, changes });
      if (deleted.length === 0) await execute({ sql: sql.clearLists, values: [number] });
      return deleted.length;
    },
  };
}
