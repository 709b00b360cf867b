import { jsonText, parseStored } from '../../foundation/parse-json.ts';
import { toPosition, toSequence } from '../../store/position.ts';
import {
  addedLetter,
  type DeadLetter,
  type DeadLetterFilter,
  type NewDeadLetter,
} from '../dead-letter.ts';
import type { DeadLetterListPage, DeadLetterStore, Fence } from '../subscription-storage.ts';
import {
  SqlExpectationFailed,
  type SqlCell,
  type SqlCells,
  type SqlDatabase,
  type SqlStatement,
} from '../../store/sql-database.ts';
import { fenced, sqlSettlements } from './settlement.ts';
import { readHistory } from './waiting.ts';

const columnsWith = (
  payload: string,
): string => `id, event_id, event_type, aggregate_id, ${payload}, error, attempts, created_at_ms, status,
  replayed_at_ms, replayed_by, notes, handler, shard, tenant, correlation_id, stream, revision,
  position, parked, history, replay_requested_at_ms, discarded_at_ms, discarded_by, discard_reason,
  cause`;
const columns = columnsWith('payload');

export function sqlDeadLetters({ dialect, run }: SqlDatabase): DeadLetterStore {
  const settlements = sqlSettlements(dialect);
  const letters = dialect.table('dead_letters');
  const blocked = dialect.table('subscription_blocked');
  const waiting = dialect.table('subscription_waiting');
  const isWaiting = `subscription = ?1 and shard = ?2 and stream = ?3`;
  const sql = {
    existing: `select ${columns} from ${letters} where event_id = ?1 and handler = ?2`,
    insert: `insert into ${letters} (id, event_id, event_type, aggregate_id, payload, error, attempts,
        created_at_ms, handler, shard, tenant, correlation_id, stream, revision, position, parked, history,
        cause)
      values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
      on conflict (event_id, handler) do nothing`,
    reopen: `update ${letters} set status = 'pending', error = ?2, attempts = ?3, history = ?4,
        parked = ?5, cause = ?6, replayed_at_ms = null, replay_requested_at_ms = null where id = ?1`,
    block: `insert into ${blocked} (subscription, shard, stream, due_at_ms) values (?1, ?2, ?3, ?4)
      on conflict (subscription, shard, stream) do update set due_at_ms = excluded.due_at_ms`,
    addWaiting: `insert into ${waiting} (subscription, shard, stream, position, event_id, failures, history)
      values (?1, ?2, ?3, ?4, ?5, 0, '[]')
      on conflict (subscription, shard, stream, position) do update set failures = 0, history = '[]'`,
    removeWaiting: `delete from ${waiting} where ${isWaiting} and position = ?4`,
    unblock: `update ${blocked} set due_at_ms = 0 where ${isWaiting}`,
    get: `select ${columns} from ${letters} where id = ?1`,
    createdAt: `select created_at_ms from ${letters} where id = ?1`,
    request: `update ${letters} set replayed_by = ?2, replay_requested_at_ms = ?3
      where id = ?1 and status = 'pending' returning 1`,
    discard: `update ${letters} set status = 'discarded', discarded_at_ms = ?2, discarded_by = ?3,
      discard_reason = ?4, replay_requested_at_ms = null where id = ?1 and status = 'pending' returning 1`,
    note: `update ${letters} set notes = ?2 where id = ?1 returning 1`,
  };

  const streamCells = ({ handler, shard, stream }: NewDeadLetter): SqlCell[] => [
    handler,
    shard,
    stream,
  ];

  async function upsert(fence: Fence, letter: NewDeadLetter): ReturnType<DeadLetterStore['add']> {
    const [[row] = []] = await run([
      { sql: sql.existing, values: [letter.eventId, letter.handler] },
    ]);
    const before = row === undefined ? undefined : toLetter(row);
    const added = addedLetter(letter, before);
    const position = toSequence(letter.position);
    const cells = streamCells(letter);
    await fenced(fence, () =>
      run([
        settlements.fence(fence),
        before === undefined ? insert(added) : reopen(added),
        settlements.mark(fence, position),
        ...(letter.parked
          ? [
              { sql: sql.block, values: [...cells, null] },
              { sql: sql.addWaiting, values: [...cells, position, letter.eventId] },
            ]
          : [{ sql: sql.removeWaiting, values: [...cells, position] }]),
      ]),
    );
    return { letter: added, isNew: (before?.replayRequestedAt ?? null) === null };
  }

  function insert(letter: NewDeadLetter): SqlStatement {
    return {
      sql: sql.insert,
      values: [
        letter.id,
        letter.eventId,
        letter.eventType,
        letter.aggregateId,
        jsonText(letter.payload),
        letter.error,
        letter.attempts,
        Date.parse(letter.createdAt),
        letter.handler,
        letter.shard,
        letter.tenant,
        letter.correlationId,
        letter.stream,
        letter.revision,
        toSequence(letter.position),
        letter.parked ? 1 : 0,
        JSON.stringify(letter.history),
        causeCell(letter),
      ],
    };
  }

  function reopen(letter: DeadLetter): SqlStatement {
    return {
      sql: sql.reopen,
      values: [
        letter.id,
        letter.error,
        letter.attempts,
        JSON.stringify(letter.history),
        letter.parked ? 1 : 0,
        causeCell(letter),
      ],
    };
  }

  async function find(
    filter: DeadLetterFilter,
    { limit = 100, after, withoutPayloads = false }: DeadLetterListPage = {},
  ): Promise<DeadLetter[]> {
    const { text, values } = condition(filter);
    const [[last] = []] =
      after === undefined ? [] : await run([{ sql: sql.createdAt, values: [after] }]);
    const page = [...(last === undefined ? [] : [Number(last[0]), String(after)]), limit];
    const at = (offset: number): string => `?${values.length + 1 + offset}`;
    const afterLast = last === undefined ? '' : ` and (created_at_ms, id) > (${at(0)}, ${at(1)})`;
    const [rows = []] = await run([
      {
        sql: `select ${withoutPayloads ? columnsWith(`'null'`) : columns} from ${letters} where ${text}${afterLast}
          order by created_at_ms, id limit ${at(page.length - 1)}`,
        values: [...values, ...page],
      },
    ]);
    return rows.map(toLetter);
  }

  function condition(filter: DeadLetterFilter): {
    readonly text: string;
    readonly values: SqlCell[];
  } {
    const { ids, eventIds, since, replayRequested, ...equal } = filter;
    const values: SqlCell[] = [];
    const parameter = (value: SqlCell): string => `?${values.push(value)}`;
    const parts = (Object.keys(equal) as (keyof typeof equal)[]).flatMap((part) => {
      const value = equal[part];
      const cell = typeof value === 'boolean' ? Number(value) : value;
      return cell === undefined ? [] : [`${columnOf[part]} = ${parameter(cell)}`];
    });
    for (const [column, wanted] of Object.entries({ id: ids, event_id: eventIds })) {
      if (wanted === undefined) continue;
      const list = dialect.values(parameter(JSON.stringify(wanted)));
      parts.push(`${column} in (select v.value from ${list} v)`);
    }
    if (since !== undefined) parts.push(`created_at_ms >= ${parameter(Date.parse(since))}`);
    if (replayRequested !== undefined) {
      parts.push(`replay_requested_at_ms is ${replayRequested ? 'not null' : 'null'}`);
    }
    return { text: ['1 = 1', ...parts].join(' and '), values };
  }

  async function get(id: string): Promise<DeadLetter | undefined> {
    const [[row] = []] = await run([{ sql: sql.get, values: [id] }]);
    return row === undefined ? undefined : toLetter(row);
  }

  /** Page by page, with one commit per dead letter, so that the number of dead letters does not matter. */
  async function eachPending(
    filter: DeadLetterFilter,
    statements: (letter: DeadLetter) => readonly SqlStatement[],
  ): Promise<number> {
    let count = 0;
    let after: string | undefined;
    for (;;) {
      const page = await find({ ...filter, status: 'pending' }, { after, withoutPayloads: true });
      for (const letter of page) {
        if (await isChanged(statements(letter))) count += 1;
      }
      after = page.at(-1)?.id;
      if (after === undefined) return count;
    }
  }

  /** Returns false if the dead letter is no longer pending. */
  async function isChanged(statements: readonly SqlStatement[]): Promise<boolean> {
    try {
      await run(statements);
      return true;
    } catch (error) {
      if (error instanceof SqlExpectationFailed) return false;
      throw error;
    }
  }

  return {
    add: upsert,
    get,
    list: find,
    async count(filter) {
      const { text, values } = condition(filter);
      const [[row] = []] = await run([
        { sql: `select count(*) from ${letters} where ${text}`, values },
      ]);
      return Number(row?.[0]);
    },
    replay: (filter, { by, atMs }) =>
      eachPending(filter, (letter) => [
        { sql: sql.request, values: [letter.id, by, atMs], expect: { what: 'new', rows: 1 } },
        { sql: sql.block, values: [...streamCells(letter), 0] },
        {
          sql: sql.addWaiting,
          values: [...streamCells(letter), toSequence(letter.position), letter.eventId],
        },
      ]),
    discard: (filter, { by, reason, atMs }) =>
      eachPending(filter, (letter) => [
        {
          sql: sql.discard,
          values: [letter.id, atMs, by, reason],
          expect: { what: 'new', rows: 1 },
        },
        { sql: sql.unblock, values: streamCells(letter) },
        { sql: sql.removeWaiting, values: [...streamCells(letter), toSequence(letter.position)] },
      ]),
    async note(id, notes) {
      const [rows = []] = await run([{ sql: sql.note, values: [id, notes] }]);
      return rows.length > 0;
    },
  };
}

const columnOf = {
  handler: 'handler',
  status: 'status',
  eventType: 'event_type',
  aggregateId: 'aggregate_id',
  tenant: 'tenant',
  stream: 'stream',
  parked: 'parked',
} as const;

/** The payload is only a copy, so a letter whose copy is damaged can still be listed, replayed and discarded. */
function toLetter(row: SqlCells): DeadLetter {
  const text = (at: number): string => String(row[at]);
  const textOrNull = (at: number): string | null => (row[at] === null ? null : text(at));
  const time = (at: number): string | null =>
    row[at] === null ? null : new Date(Number(row[at])).toISOString();
  const payload = parseStored(row[4]);
  return {
    id: text(0),
    eventId: text(1),
    eventType: text(2),
    aggregateId: text(3),
    payload: payload ?? null,
    error: payload === undefined ? `${text(5)} (the stored payload is damaged)` : text(5),
    attempts: Number(row[6]),
    createdAt: time(7) ?? '',
    status: text(8) as DeadLetter['status'],
    replayedAt: time(9),
    replayedBy: textOrNull(10),
    notes: text(11),
    handler: text(12),
    shard: Number(row[13]),
    tenant: text(14),
    correlationId: text(15),
    stream: text(16),
    revision: Number(row[17]),
    position: toPosition(Number(row[18])),
    parked: Number(row[19]) === 1,
    history: readHistory(row[20]),
    replayRequestedAt: time(21),
    discardedAt: time(22),
    discardedBy: textOrNull(23),
    discardReason: textOrNull(24),
    cause: (parseStored(textOrNull(25)) ?? null) as DeadLetter['cause'],
  };
}

function causeCell({ cause }: NewDeadLetter): string | null {
  return cause === null ? null : JSON.stringify(cause);
}
