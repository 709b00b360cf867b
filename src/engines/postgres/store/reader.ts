// Reads streams and all events up to the safe head, with filters evaluated in the database.

import type { StreamState } from '../../../store/expected-revision.ts';
import type { PageBound } from '../../../store/page-bound.ts';
import type { StoredRow } from '../../../store/recorded-event.ts';
import { visibleRange } from '../../../store/retention.ts';
import type {
  AllPage,
  AllQuery,
  RowFilter,
  StreamPage,
  StreamQuery,
} from '../../../store/store-engine.ts';
import type { PostgresConnection, PreparedSql, Row } from '../connection/connection.ts';
import { lockClass, quoteName } from '../connection/schema.ts';
import type { PostgresNames } from './names.ts';

export interface PostgresReader {
  readStream(query: StreamQuery): Promise<StreamPage>;
  streamStates(streams: readonly string[]): Promise<ReadonlyMap<string, StreamState>>;
  readAll(query: AllQuery): Promise<AllPage>;
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
  /** Queries the safe head; `inFlight` means that another transaction is about to commit events. */
  safeHead(): Promise<{ readonly head: number; readonly inFlight: boolean }>;
}

/** Up to this number of types are merged from their index; a scan is cheaper for more. */
const mergedTypesMax = 32;
/** A filtered read scans at most this number of events before it returns a page. */
const scanWindow = 20_000;

export function createPostgresReader(
  connection: PostgresConnection,
  names: PostgresNames,
  schema: string,
): PostgresReader {
  const at = quoteName(schema);
  const lock = lockClass(schema);
  const prepared = (name: string, text: string): PreparedSql => ({
    name: `${schema} ${name}`,
    text,
  });
  const columns =
    'e.sequence, s.name, e.revision, e.event_id, e.type_id, e.recorded_at_ms, e.payload, e.meta';
  /** Ends the page of `sql` with the row that reaches the size; the last column is the size so far. */
  const withinBytes = (sql: string, order: 'asc' | 'desc', bytesMax: string): string =>
    `select * from (select p.*, sum(2 * (octet_length(p.payload) + octet_length(p.meta)))
       over (order by p.sequence ${order} rows unbounded preceding) as bytes from (${sql}) p) b
     where b.bytes - 2 * (octet_length(b.payload) + octet_length(b.meta)) < ${bytesMax}::bigint
     order by b.sequence ${order}`;
  const source = `${at}.events e join ${at}.streams s on s.id = e.stream_id`;
  const conditions = `($3::integer[] is null or e.type_id = any($3)) and ($4::integer is null or e.category_id = $4)
    and ($5::integer is null or e.tenant_id = $5)`;
  const stateColumns =
    'id, revision, truncate_before, max_count, max_age_s, tombstoned, has_metadata';
  const state = prepared('state', `select ${stateColumns} from ${at}.streams where name = $1`);
  const states = prepared(
    'states',
    `select ${stateColumns}, name from ${at}.streams where name = any($1::text[])`,
  );
  const inOrder = (order: 'asc' | 'desc') => ({
    stream: prepared(
      `stream ${order}`,
      withinBytes(
        `select ${columns} from ${source} where e.stream_id = $1 and e.revision between $2 and $3
         and e.recorded_at_ms > $4 order by e.revision ${order} limit $5`,
        order,
        '$6',
      ),
    ),
    plain: prepared(
      `all ${order}`,
      withinBytes(
        `select ${columns} from ${source} where e.sequence > $1 and e.sequence <= $2
         order by e.sequence ${order} limit $3`,
        order,
        '$4',
      ),
    ),
    scanned: prepared(
      `scan ${order}`,
      withinBytes(
        `select ${columns} from ${source} where e.sequence > $1 and e.sequence <= $2 and ${conditions}
         order by e.sequence ${order} limit $6`,
        order,
        '$7',
      ),
    ),
    merged: prepared(
      `merge ${order}`,
      withinBytes(
        `select ${columns} from unnest($3::integer[]) t(id) cross join lateral (
           select * from ${at}.events x where x.type_id = t.id and x.sequence > $1 and x.sequence <= $2
             and ($4::integer is null or x.category_id = $4) and ($5::integer is null or x.tenant_id = $5)
           order by x.sequence ${order} limit $6
         ) e join ${at}.streams s on s.id = e.stream_id order by e.sequence ${order} limit $6`,
        order,
        '$7',
      ),
    ),
  });
  const statements = { forwards: inOrder('asc'), backwards: inOrder('desc') };
  const byId = prepared(
    'by id',
    `select ${columns} from ${source} where s.name = $2 and e.event_id = $1`,
  );
  const newSql = prepared(
    'new',
    // Without new events the function returns one row of nulls, whose size is null.
    `select sequence, stream, revision, event_id, type_id, recorded_at_ms, payload, meta, head, bytes from (
       select n.*, sum(2 * (octet_length(n.payload) + octet_length(n.meta)))
         over (order by n.sequence rows unbounded preceding) as bytes from ${at}.read_new($1, $2, $3) n
     ) b where b.bytes is null or b.bytes - 2 * (octet_length(b.payload) + octet_length(b.meta)) < $4::bigint
     order by b.sequence`,
  );
  const safeHeadSql = prepared('head', `select head, in_flight from ${at}.safe_head($1)`);
  /** The last known safe head, which only grows. It saves queries while a reader catches up. */
  let knownHead = 0;

  async function safeHead(): Promise<{ head: number; inFlight: boolean }> {
    const [[head, inFlight] = []] = await connection.query(safeHeadSql, [lock]);
    knownHead = Math.max(knownHead, Number(head));
    return { head: knownHead, inFlight: inFlight === true };
  }

  function toRow(row: Row): StoredRow {
    const [sequence, name, revision, eventId, typeId, recordedAtMs, payload, meta] = row;
    return {
      sequence: Number(sequence),
      stream: String(name),
      revision: Number(revision),
      eventId: String(eventId),
      type: names.typeName(Number(typeId)),
      recordedAtMs: Number(recordedAtMs),
      payload: String(payload),
      meta: String(meta),
    };
  }

  async function readStream(query: StreamQuery): Promise<StreamPage> {
    const [found] = await connection.query(state, [query.stream]);
    if (found === undefined) return { state: undefined, rows: [], end: true };
    const [id] = found;
    const streamState = toStreamState(found);
    if (streamState === undefined) return { state: undefined, rows: [], end: true };
    const range = visibleRange(query, streamState);
    if (range === undefined) return { state: streamState, rows: [], end: true };
    const sql = statements[query.direction].stream;
    const { low, high, recordedAfterMs } = range;
    const values = [id, low, high, recordedAfterMs, query.limit, query.bytesMax];
    const rows = await connection.query(sql, values);
    await ensureTypes(rows);
    return { state: streamState, rows: rows.map(toRow), end: !isFull(rows, query) };
  }

  /** Loads types that other processes added, when their first event is read. */
  async function ensureTypes(rows: readonly Row[]): Promise<void> {
    if (rows.some((row) => names.typeName(Number(row[4])) === '')) await names.refreshTypes();
  }

  async function readAll(query: AllQuery): Promise<AllPage> {
    const { direction, after, limit } = query;
    const known = knownHead;
    if (direction === 'forwards' && after >= known && isOpen(query.filter)) return readNew(query);
    if (direction === 'backwards' || after >= known) {
      return readUpTo(query, (await safeHead()).head);
    }
    // The known head may be outdated. If this page is probably the last one, query the head concurrently;
    // a full page does not need the result.
    const querying = known - after <= limit ? handled(safeHead()) : undefined;
    const first = await readUpTo(query, known);
    if (!first.end) return first;
    const { head } = await (querying ?? safeHead());
    if (head <= known) return first;
    const remaining = { ...query, after: first.considered, limit: limit - first.rows.length };
    const rest = await readUpTo(remaining, head);
    return { ...rest, rows: [...first.rows, ...rest.rows] };
  }

  async function readNew({ after, limit, bytesMax }: AllQuery): Promise<AllPage> {
    const found = await connection.query(newSql, [lock, after, limit, bytesMax]);
    const head = Number(found[0]?.[8] ?? 0);
    knownHead = Math.max(knownHead, head);
    const rows = found.filter(([sequence]) => sequence !== null);
    await ensureTypes(rows);
    const full = isFull(rows, { limit, bytesMax });
    const considered = full ? Number(rows.at(-1)?.[0]) : Math.max(head, after);
    return { rows: rows.map(toRow), considered, end: !full };
  }

  async function readUpTo(query: AllQuery, head: number): Promise<AllPage> {
    const { direction, after, limit, bytesMax, filter } = query;
    const forwards = direction === 'forwards';
    const low = forwards ? after : 0;
    const high = forwards ? head : Math.min(head, after - 1);
    const nothing: AllPage = { rows: [], considered: after, end: true };
    if (low >= high) return nothing;

    const category = filter.category === undefined ? null : await names.lookUp(filter.category);
    const tenant = filter.tenant === undefined ? null : await names.lookUp(filter.tenant);
    const wanted = await wantedTypes(filter.type, category);
    const sql = statements[direction];
    if (wanted === null && category === null && tenant === null && filter.stream === undefined) {
      const rows = await connection.query(sql.plain, [low, high, limit, bytesMax]);
      await ensureTypes(rows);
      return pageOf(query, rows, rows, { low, high, full: isFull(rows, query) });
    }
    const isMerged = wanted !== null && wanted.length <= mergedTypesMax && tenant === null;
    // A page covers the whole window, unless the limit is reached earlier.
    const span = isMerged ? Number.POSITIVE_INFINITY : scanWindow;
    const from = forwards ? low : Math.max(low, high - span);
    const to = forwards ? Math.min(high, low + span) : high;
    const values = [from, to, wanted, category, tenant, limit, bytesMax];
    const rows = await connection.query(isMerged ? sql.merged : sql.scanned, values);
    await ensureTypes(rows);
    const { stream: accepts } = filter;
    const matching = accepts === undefined ? rows : rows.filter((row) => accepts(String(row[1])));
    const page = pageOf(query, rows, matching, {
      low: from,
      high: to,
      full: isFull(rows, query),
    });
    const reachedEnd = forwards ? page.considered >= high : page.considered <= low;
    return { ...page, end: page.end && reachedEnd };
  }

  /** Returns the numbers of the wanted types; null means all types. */
  async function wantedTypes(
    accepts: ((type: string) => boolean) | undefined,
    category: number | null,
  ): Promise<readonly number[] | null> {
    if (accepts === undefined && category === null) return null;
    const types = await names.refreshTypes();
    const wanted: number[] = [];
    for (const [id, { name, categories }] of types) {
      if (category !== null && !categories.has(category)) continue;
      if (accepts === undefined || accepts(name)) wanted.push(id);
    }
    return wanted.length === types.size && category === null ? null : wanted;
  }

  function pageOf(
    { direction }: AllQuery,
    fetched: readonly Row[],
    matching: readonly Row[],
    range: { readonly low: number; readonly high: number; readonly full: boolean },
  ): AllPage {
    const edge = direction === 'forwards' ? range.high : range.low;
    const last = fetched.at(-1)?.[0];
    return {
      rows: matching.map(toRow),
      considered: range.full ? Number(last) : edge,
      end: !range.full,
    };
  }

  return {
    readStream,
    async streamStates(streams) {
      const found = await connection.query(states, [streams]);
      return new Map(
        found.flatMap((row) => {
          const known = toStreamState(row);
          return known === undefined ? [] : [[String(row[7]), known] as const];
        }),
      );
    },
    readAll,
    async findEvent(name, eventId) {
      const rows = await connection.query(byId, [eventId, name]);
      await ensureTypes(rows);
      return rows[0] === undefined ? undefined : toRow(rows[0]);
    },
    safeHead,
  };
}

/** Undefined: the row exists for the lock of an append, and nothing was written. */
function toStreamState(row: Row): StreamState | undefined {
  const [, revision, truncateBefore, maxCount, maxAge, tombstoned, hasMetadata] = row;
  if (Number(revision) < 0 && hasMetadata !== true) return undefined;
  return {
    revision: Number(revision),
    truncateBefore: Number(truncateBefore),
    maxCount: maxCount === null ? undefined : Number(maxCount),
    maxAgeSeconds: maxAge === null ? undefined : Number(maxAge),
    tombstoned: tombstoned === true,
  };
}

/** The last column of a row is the size of the page so far. */
function isFull(rows: readonly Row[], { limit, bytesMax }: PageBound): boolean {
  return rows.length >= limit || Number(rows.at(-1)?.at(-1) ?? 0) >= bytesMax;
}

function isOpen({ type, category, tenant, stream }: RowFilter): boolean {
  return [type, category, tenant, stream].every((part) => part === undefined);
}

/** Marks a rejection as handled: the reader may return without awaiting a query that it started ahead. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
