// Queries and cached lists of read models on an SQL database. Engines write and load documents themselves,
// because the databases differ too much there.

import type { SqlCell, SqlCells, SqlDatabase, SqlDialect } from '../../store/sql-database.ts';
import type {
  DocumentPage,
  ModelKey,
  PageQuery,
  ReadModelStore,
  StoredDocument,
} from '../read-model-store.ts';
import { fromCursor, toCursor } from '../rules/page-cursor.ts';

export interface SqlReadModelsOptions {
  readonly dialect: SqlDialect;
  /** Runs a query that sees committed data only. */
  readonly query: (sql: string, values: readonly SqlCell[]) => Promise<readonly SqlCells[]>;
  readonly run: SqlDatabase['run'];
  readonly write: ReadModelStore['write'];
  readonly clear: ReadModelStore['clear'];
  readonly load: ReadModelStore['load'];
}

/** `banking.currency.v1`: the tables refer to models by a number, which this name maps to. */
export function modelName({ bc, aggregate, version }: ModelKey): string {
  return `${bc}.${aggregate}.v${version}`;
}

const columns = 'd.id, d.stream, d.revision, d.document';
const join = 'd.model = e.model and d.tenant = e.tenant and d.id = e.id';

function numberIn({ table }: SqlDialect): string {
  return `(select m.id from ${table('read_models')} m where m.name = ?1)`;
}

/**
 * Pages of ranges and sets, by model, tenant and name. The limit applies before the join, because PostgreSQL
 * cannot estimate the length of a range and might join and sort all of it.
 */
export function pageSql(
  dialect: SqlDialect,
): Readonly<Record<'members' | 'ascending' | 'descending', string>> {
  const [start, bound] = ['(cast(?4 as double precision), ?5)', 'cast(?6 as double precision)'];
  const named = `r.model = ${numberIn(dialect)} and r.tenant = ?2 and r.name = ?3`;
  const ranged = (bounds: string, direction: 'asc' | 'desc'): string => `select ${columns}, e.score
    from (select r.model, r.tenant, r.score, r.id from ${dialect.table('read_ranges')} r
      where ${named} and ${bounds} order by r.score ${direction}, r.id ${direction} limit ?7) e
    join ${dialect.table('read_documents')} d on ${join}
    order by e.score ${direction}, e.id ${direction}`;
  return {
    members: `select ${columns}, 0 as score
      from (select r.model, r.tenant, r.id from ${dialect.table('read_sets')} r
        where ${named} and r.id > ?4 order by r.id limit ?5) e
      join ${dialect.table('read_documents')} d on ${join} order by e.id`,
    // The cursor is a row bound, so the index scan starts there.
    ascending: ranged(`(r.score, r.id) > ${start} and r.score <= ${bound}`, 'asc'),
    descending: ranged(`(r.score, r.id) < ${start} and r.score >= ${bound}`, 'desc'),
  };
}

/** Ends a page with the document that reaches parameter `bytesMax`. `found`: the number of rows without that limit. */
function boundedSql(rows: string, order: string, bytesMax: number): string {
  return `select id, stream, revision, document, found, score
    from (select r.*, count(*) over () as found, coalesce(sum(octet_length(r.document))
        over (order by ${order} rows between unbounded preceding and 1 preceding), 0) as bytes_before
      from (${rows}) r) p
    where bytes_before < cast(?${bytesMax} as bigint) order by ${order}`;
}

export function sqlReadModels(options: SqlReadModelsOptions): ReadModelStore {
  const { dialect, query, run } = options;
  const [documents, indexes, ranges] = [
    dialect.table('read_documents'),
    dialect.table('read_indexes'),
    dialect.table('read_ranges'),
  ];
  const model = numberIn(dialect);
  const generation = `coalesce((select g.generation from ${dialect.table('read_generations')} g
    where g.model = ${model} and g.tenant = ?2), 0)`;
  const lists = dialect.table('read_lists');
  const { members, ascending, descending } = pageSql(dialect);
  const sql = {
    find: `select ${columns} from ${indexes} e join ${documents} d on ${join}
      where e.model = ${model} and e.tenant = ?2 and e.name = ?3 and e.value = ?4`,
    all: boundedSql(
      `select ${columns}, 0 as score from ${documents} d
        where d.model = ${model} and d.tenant = ?2 and d.id > ?3 and d.document is not null
        order by d.id limit ?4`,
      'id',
      5,
    ),
    members: boundedSql(members, 'id', 6),
    ascending: boundedSql(ascending, 'score, id', 8),
    descending: boundedSql(descending, 'score desc, id desc', 8),
    count: `select count(*) from ${ranges} e where e.model = ${model} and e.tenant = ?2
      and e.name = ?3 and e.score >= cast(?4 as double precision)
      and e.score <= cast(?5 as double precision)`,
    // Read the list and the generation in one statement, because a list is valid for one generation only.
    list: `select g.now, (select l.ids from ${lists} l where l.model = ${model} and l.tenant = ?2
        and l.hash = ?3 and l.generation = g.now and l.expires_at_ms > ${dialect.nowMs})
      from (select ${generation} as now) g`,
    keepList: `insert into ${lists} (model, tenant, hash, generation, ids, expires_at_ms)
      select m.id, cast(?2 as text), cast(?3 as text), cast(?4 as bigint), cast(?5 as text),
        ${dialect.nowMs} + cast(?6 as bigint)
      from ${dialect.table('read_models')} m where m.name = ?1 and ${generation} = cast(?4 as bigint)
      on conflict (model, tenant, hash) do update set generation = excluded.generation,
        ids = excluded.ids, expires_at_ms = excluded.expires_at_ms
      returning 1`,
    // Outdated lists are never read again.
    sweepLists: `delete from ${lists} where model = ${model} and tenant = ?2
      and (generation <> ${generation} or expires_at_ms <= ${dialect.nowMs})`,
    name: `insert into ${dialect.table('read_models')} (name) values (?1) on conflict do nothing`,
  };

  async function page(
    text: string,
    values: readonly SqlCell[],
    { limit, bytesMax = Number.MAX_SAFE_INTEGER }: PageQuery,
  ): Promise<DocumentPage> {
    const rows = (await query(text, [...values, limit + 1, bytesMax])).slice(0, limit);
    const [id, , , , found, score] = rows.at(-1) ?? [];
    const hasMore = Number(found) > rows.length;
    return {
      documents: rows.map((row) => toStored(row)),
      cursor: hasMore ? toCursor({ score: Number(score), id: String(id) }) : undefined,
    };
  }

  return {
    capabilities: { durable: true, crossProcess: true, orderedSets: true },
    write: options.write,
    clear: options.clear,
    load: options.load,
    async find(key, tenant, { index, value }) {
      const [row] = await query(sql.find, [modelName(key), tenant, index, value]);
      return row === undefined ? undefined : toStored(row);
    },
    async members(key, tenant, { set, ...pageQuery }) {
      const { cursor } = pageQuery;
      const after = cursor === undefined ? '' : fromCursor(cursor).id;
      return set === 'all'
        ? page(sql.all, [modelName(key), tenant, after], pageQuery)
        : page(sql.members, [modelName(key), tenant, set, after], pageQuery);
    },
    async range(key, tenant, rangeQuery) {
      const { range, from = -Number.MAX_VALUE, to = Number.MAX_VALUE, direction } = rangeQuery;
      // Start before the first id in either direction: '' sorts below every id, '~' above.
      const edge = direction === 'ascending' ? { score: from, id: '' } : { score: to, id: '~' };
      const end = direction === 'ascending' ? to : from;
      const after = rangeQuery.cursor === undefined ? edge : fromCursor(rangeQuery.cursor);
      const values = [modelName(key), tenant, range, after.score, after.id, end];
      return page(sql[direction], values, rangeQuery);
    },
    async count(key, tenant, { range, from = -Number.MAX_VALUE, to = Number.MAX_VALUE }) {
      const [[found = 0] = []] = await query(sql.count, [modelName(key), tenant, range, from, to]);
      return Number(found);
    },
    async list(key, { tenant, hash }) {
      const [[now = 0, ids = null] = []] = await query(sql.list, [modelName(key), tenant, hash]);
      return {
        ids: ids === null ? undefined : (JSON.parse(String(ids)) as string[]),
        generation: String(now),
      };
    },
    async keepList(key, { tenant, hash }, list) {
      const name = modelName(key);
      const values = [name, tenant, hash, Number(list.generation), JSON.stringify(list.ids)];
      const [, storedRows = []] = await run([
        { sql: sql.name, values: [name] },
        { sql: sql.keepList, values: [...values, list.ttlMs] },
        { sql: sql.sweepLists, values: [name, tenant] },
      ]);
      return storedRows.length > 0;
    },
  };
}

export function toStored([id, stream, revision, document]: SqlCells): StoredDocument {
  return {
    id: String(id),
    stream: String(stream),
    revision: Number(revision),
    document: document === null || document === undefined ? null : String(document),
  };
}
