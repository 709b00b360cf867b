// Reads of events on the calling thread: a page takes about a millisecond and sees one consistent state.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StreamState } from '../../../store/expected-revision.ts';
import { createPageMeter, type PageBound } from '../../../store/page-bound.ts';
import type { StoredRow } from '../../../store/recorded-event.ts';
import { visibleRange } from '../../../store/retention.ts';
import type {
  AllPage,
  AllQuery,
  RowFilter,
  StreamPage,
  StreamQuery,
} from '../../../store/store-engine.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../thread/protocol.ts';

export interface SqliteReader {
  readStream(query: StreamQuery): StreamPage;
  streamStates(streams: readonly string[]): ReadonlyMap<string, StreamState>;
  readAll(query: AllQuery): AllPage;
  findEvent(stream: string, eventId: string): StoredRow | undefined;
  head(): number;
  /** Runs any other query and returns rows as arrays. */
  query(sql: string, values: readonly SqlValue[]): readonly (readonly SqlValue[])[];
  /** Runs several queries on one consistent state. */
  queries(statements: readonly SqlStatement[]): readonly (readonly (readonly SqlValue[])[])[];
  /** Runs a query and returns rows by column name. */
  select(sql: string, values: readonly SqlValue[]): readonly SqlRow[];
  /** Returns a number that changes whenever another connection commits. */
  dataVersion(): number;
  close(): void;
}

interface SizedQuery {
  readonly rows: StatementSync;
  readonly size: StatementSync;
}

interface KnownType {
  readonly name: string;
  readonly categories: Set<number>;
}

/** At most this many types are merged from their index; for more, a scan of all events is cheaper. */
const mergedTypesMax = 8;
/** A page of a filter that matches rarely ends after this many events. */
const scanWindow = 5_000;

// Each cell that is copied into JavaScript costs time, so only needed columns are selected.
const ownColumns =
  'e.sequence, e.revision, e.event_id, e.type_id, e.recorded_at_ms, e.payload, e.meta';
const columns = `${ownColumns}, s.name, e.category_id, e.tenant_id`;
const from = 'from events e join streams s on s.id = e.stream_id';
/** Like `rowBytes`. */
const bytes = '2 * (octet_length(e.payload) + octet_length(e.meta))';

type OwnCells = [
  sequence: number,
  revision: number,
  eventId: string,
  typeId: number,
  recordedAtMs: number,
  payload: string,
  meta: string,
];
type Cells = [...OwnCells, stream: string, categoryId: number, tenantId: number];

export function createReader(database: DatabaseSync): SqliteReader {
  database.exec('pragma cache_size = -32768');
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  const cells = (sql: string): StatementSync => {
    const statement = prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  const begin = prepare('begin');
  const commit = prepare('commit');
  const selectState = prepare(
    'select id, revision, truncate_before, max_count, max_age_s, tombstoned from streams where name = ?',
  );
  const selectStates = prepare(
    `select name, revision, truncate_before, max_count, max_age_s, tombstoned from streams
     where name in (select value from json_each(?))`,
  );
  /** A query for rows, and one for their size. */
  const sized = (selected: string, rest: string, source = 'from events e'): SizedQuery => ({
    rows: cells(`select ${selected} ${source} ${rest}`),
    size: cells(
      `select coalesce(sum(bytes), 0) from (select ${bytes} as bytes from events e ${rest})`,
    ),
  });
  const inOrder = (order: 'asc' | 'desc', isAfter: '>' | '<') => ({
    stream: sized(
      ownColumns,
      `where e.stream_id = ? and e.revision between ? and ?
       and e.recorded_at_ms > ? order by e.revision ${order} limit ?`,
    ),
    all: sized(columns, `where e.sequence ${isAfter} ? order by e.sequence ${order} limit ?`, from),
    bySequences: sized(
      columns,
      `where e.sequence in (select value from json_each(?)) order by e.sequence ${order}`,
      from,
    ),
    type: cells(
      `select sequence from events indexed by events_by_type
       where type_id = ? and sequence ${isAfter} ? order by sequence ${order} limit ?`,
    ),
  });
  const statements = { forwards: inOrder('asc', '>'), backwards: inOrder('desc', '<') };
  const byId = cells(
    `select ${columns} from streams s join event_ids i on i.stream_id = s.id and i.event_id = ?2
       join events e on e.stream_id = s.id and e.revision = i.revision where s.name = ?1
     union all
     select ${columns} from streams s join events e on e.stream_id = s.id and e.revision >= s.ids_to
       where s.name = ?1 and e.event_id = ?2
     limit 1`,
  );
  const selectHead = prepare('select coalesce(max(sequence), 0) as head from events');
  const selectVersion = prepare('pragma data_version');
  const selectPairs = prepare(
    `select p.id, p.category_id, p.type_id, n.name from category_types p
     join names n on n.id = p.type_id where p.id > ? order by p.id`,
  );
  const selectName = prepare('select id from names where name = ?');

  const arrayStatements = new Map<string, StatementSync>();
  const rowStatements = new Map<string, StatementSync>();
  const types = new Map<number, KnownType>();
  let lastPair = 0;

  /** Loads types that were added since the last call; usually this is an empty index lookup. */
  function refreshTypes(): void {
    for (const row of selectPairs.all(lastPair)) {
      const typeId = Number(row['type_id']);
      const known = types.get(typeId) ?? { name: String(row['name']), categories: new Set() };
      known.categories.add(Number(row['category_id']));
      types.set(typeId, known);
      lastPair = Number(row['id']);
    }
  }

  function toRow(row: OwnCells | Cells, stream: string): StoredRow {
    return {
      sequence: row[0],
      stream,
      revision: row[1],
      eventId: row[2],
      type: types.get(row[3])?.name ?? '',
      recordedAtMs: row[4],
      payload: row[5],
      meta: row[6],
    };
  }
  const toNamedRow = (row: Cells): StoredRow => toRow(row, row[7]);

  /** Runs all statements of a page on one snapshot. */
  function inSnapshot<T>(work: () => T): T {
    begin.run();
    try {
      return work();
    } finally {
      commit.run();
    }
  }

  function nameId(name: string | undefined): number | undefined {
    if (name === undefined) return undefined;
    const row = selectName.get(name);
    return row === undefined ? -1 : Number(row['id']);
  }

  function head(): number {
    return Number(selectHead.get()?.['head']);
  }

  function readStream(query: StreamQuery): StreamPage {
    const found = selectState.get(query.stream);
    if (found === undefined) return { state: undefined, rows: [], end: true };
    const state = toStreamState(found);
    const range = visibleRange(query, state);
    if (range === undefined) return { state, rows: [], end: true };
    refreshTypes();
    const { low, high, recordedAfterMs } = range;
    const values = [Number(found['id']), low, high, recordedAfterMs, query.limit];
    const { stream } = statements[query.direction];
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    for (const cellsOfRow of fetch<OwnCells>(stream, values, query)) {
      const row = toRow(cellsOfRow, query.stream);
      rows.push(row);
      if (isLast(row)) return { state, rows, end: false };
    }
    return { state, rows, end: true };
  }

  function readAll(query: AllQuery): AllPage {
    refreshTypes();
    const { filter } = query;
    const wanted = wantedTypes(filter);
    const needsRowTest =
      filter.category !== undefined || filter.tenant !== undefined || filter.stream !== undefined;
    if (wanted === 'all' && !needsRowTest) return readScanned(query, undefined);
    const accepts = rowTest(filter, wanted);
    if (wanted !== 'all' && wanted.size <= mergedTypesMax)
      return readMerged(query, wanted, accepts);
    return readScanned(query, accepts);
  }

  function readScanned(query: AllQuery, accepts: RowTest | undefined): AllPage {
    const { all } = statements[query.direction];
    const window = accepts === undefined ? query.limit : scanWindow;
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    let considered = query.after;
    let scanned = 0;
    while (scanned < window) {
      const count = Math.min(1_000, window - scanned);
      let found = 0;
      for (const cellsOfRow of fetch<Cells>(all, [considered, count], query)) {
        found += 1;
        [considered] = cellsOfRow;
        if (accepts?.(cellsOfRow) === false) continue;
        const row = toNamedRow(cellsOfRow);
        rows.push(row);
        if (isLast(row)) return { rows, considered, end: false };
      }
      scanned += found;
      if (found < count) return { rows, considered, end: true };
    }
    return { rows, considered, end: false };
  }

  function readMerged(query: AllQuery, wanted: ReadonlySet<number>, accepts: RowTest): AllPage {
    const { direction, after, limit } = query;
    const forwards = direction === 'forwards';
    const limitOfAll = Math.max(limit, 1);
    const { type: statement, bySequences } = statements[direction];
    const end = forwards ? head() : 0;
    const sequences: number[] = [];
    for (const typeId of wanted) {
      for (const [sequence] of statement.all(typeId, after, limitOfAll) as unknown as [number][]) {
        sequences.push(sequence);
      }
    }
    sequences.sort((a, b) => (forwards ? a - b : b - a));
    const page = sequences.slice(0, limitOfAll);
    const rows: StoredRow[] = [];
    const isFull = createPageMeter({ ...query, limit: Number.POSITIVE_INFINITY });
    for (const cellsOfRow of fetch<Cells>(bySequences, [JSON.stringify(page)], query)) {
      if (!accepts(cellsOfRow)) continue;
      const row = toNamedRow(cellsOfRow);
      rows.push(row);
      if (isFull(row)) return { rows, considered: row.sequence, end: false };
    }
    // Fewer rows than the limit: the read has reached the head.
    const isEnd = sequences.length < limitOfAll;
    const considered = isEnd ? (forwards ? Math.max(after, end) : 0) : (page.at(-1) ?? after);
    return { rows, considered, end: isEnd };
  }

  /** Fetches small rows together, which is twice as fast, and large rows one at a time. */
  function fetch<Row>(
    { rows, size }: SizedQuery,
    values: readonly (number | string)[],
    { bytesMax }: PageBound,
  ): Iterable<Row> {
    const [total] = size.get(...values) as unknown as [number];
    if (total <= bytesMax) return rows.all(...values) as unknown as Row[];
    return rows.iterate(...values) as unknown as Iterable<Row>;
  }

  type RowTest = (row: Cells) => boolean;

  function wantedTypes(filter: RowFilter): ReadonlySet<number> | 'all' {
    const categoryId = nameId(filter.category);
    if (filter.type === undefined && categoryId === undefined) return 'all';
    const wanted = new Set<number>();
    for (const [id, type] of types) {
      const fits = categoryId === undefined || type.categories.has(categoryId);
      if (fits && filter.type?.(type.name) !== false) wanted.add(id);
    }
    return wanted.size === types.size && categoryId === undefined ? 'all' : wanted;
  }

  function rowTest(filter: RowFilter, wanted: ReadonlySet<number> | 'all'): RowTest {
    const categoryId = nameId(filter.category);
    const tenantId = nameId(filter.tenant);
    return (row) =>
      (wanted === 'all' || wanted.has(row[3])) &&
      (categoryId === undefined || row[8] === categoryId) &&
      (tenantId === undefined || row[9] === tenantId) &&
      filter.stream?.(row[7]) !== false;
  }

  function select(sql: string, values: readonly SqlValue[]): readonly (readonly SqlValue[])[] {
    return cached(arrayStatements, sql, cells).all(...values) as unknown as (readonly SqlValue[])[];
  }

  return {
    readStream: (streamQuery) => inSnapshot(() => readStream(streamQuery)),
    streamStates: (streams) =>
      new Map(
        selectStates
          .all(JSON.stringify(streams))
          .map((row) => [String(row['name']), toStreamState(row)]),
      ),
    readAll: (allQuery) => inSnapshot(() => readAll(allQuery)),
    findEvent: (stream, eventId) =>
      inSnapshot(() => {
        refreshTypes();
        const row = byId.get(stream, eventId) as unknown as Cells | undefined;
        return row === undefined ? undefined : toNamedRow(row);
      }),
    head,
    query: select,
    queries: (several) => inSnapshot(() => several.map(({ sql, values }) => select(sql, values))),
    select: (sql, values) =>
      cached(rowStatements, sql, prepare).all(...values) as unknown as readonly SqlRow[],
    dataVersion: () => Number(selectVersion.get()?.['data_version']),
    close: () => database.close(),
  };
}

/** The columns `revision`, `truncate_before`, `max_count`, `max_age_s` and `tombstoned` of a stream. */
export function toStreamState(row: Readonly<Record<string, unknown>>): StreamState {
  const { max_count: maxCount, max_age_s: maxAge } = row;
  return {
    revision: Number(row['revision']),
    truncateBefore: Number(row['truncate_before']),
    maxCount: maxCount === null ? undefined : Number(maxCount),
    maxAgeSeconds: maxAge === null ? undefined : Number(maxAge),
    tombstoned: row['tombstoned'] === 1,
  };
}

function cached(
  statements: Map<string, StatementSync>,
  sql: string,
  prepare: (sql: string) => StatementSync,
): StatementSync {
  const known = statements.get(sql);
  if (known !== undefined) return known;
  const statement = prepare(sql);
  statements.set(sql, statement);
  return statement;
}
