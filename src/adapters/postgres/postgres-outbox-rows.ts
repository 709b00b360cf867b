// Between the ledger's messages and PostgreSQL's rows.

import type { OutboxRow } from '../../outbox/check-outbox.ts';
import type { Enqueued, OutboxOutcome } from '../../outbox/outbox-ledger.ts';
import type { ClaimedMessage, OutboxMessage, OutboxStatus } from '../../outbox/outbox-message.ts';
import type { Row } from './postgres-connection.ts';
import { notATransaction } from './transaction-query.ts';

type Cell = Row[number] | undefined;

export interface Source {
  readonly id: string;
  readonly source_stream_id: string;
  readonly source_event_id: string;
  readonly integration_type: string;
}

/** From a library that may have renamed the columns, to `sourceStreamId` for example. */
export function columnsOf(row: object): Source {
  const cells = new Map(
    Object.entries(row).map(([name, cell]) => [name.replaceAll('_', '').toLowerCase(), cell]),
  );
  const text = (name: string): string => {
    const cell: unknown = cells.get(name.replaceAll('_', ''));
    if (typeof cell === 'string') return cell;
    throw notATransaction('enqueueIn', `the rows of the query have no column '${name}'`);
  };
  return {
    id: text('id'),
    source_stream_id: text('source_stream_id'),
    source_event_id: text('source_event_id'),
    integration_type: text('integration_type'),
  };
}

export function encodeRows(rows: readonly OutboxRow[]): string {
  return JSON.stringify(
    rows.map((row, ord) => ({
      ord,
      source_stream_id: row.sourceStreamId,
      source_event_id: row.sourceEventId,
      integration_type: row.integrationType,
      event_type: row.eventType,
      payload: row.payload,
      headers: row.headers,
      tenant_id: row.tenantId,
      user_id: row.userId,
      correlation_id: row.correlationId,
      ordering_key: row.orderingKey,
      due_at_ms: row.dueAtMs,
      max_attempts: row.maxAttempts,
      lane: row.lane,
      order_hash: row.orderHash,
      stream_hash: row.streamHash,
    })),
  );
}

/** Those that are missing from what was added: they were there before. */
export function sourcesLeft(
  rows: readonly OutboxRow[],
  known: ReadonlyMap<string, Enqueued>,
): readonly Omit<Source, 'id'>[] {
  return rows
    .filter((row) => !known.has(rowKey(row)))
    .map((row) => ({
      source_stream_id: row.sourceStreamId,
      source_event_id: row.sourceEventId,
      integration_type: row.integrationType,
    }));
}

export function rowKey(row: OutboxRow): string {
  return JSON.stringify([row.sourceStreamId, row.sourceEventId, row.integrationType]);
}

export function sourceKey(source: Source): string {
  return JSON.stringify([source.source_stream_id, source.source_event_id, source.integration_type]);
}

/** A claim's token tells its row, too: settling finds it without a look at the ids. */
export function encodeToken(seq: Cell, token: Cell): string {
  return `${Number(seq)}.${Number(token)}`;
}

export interface ClaimPlace {
  readonly seq: number;
  readonly token: number;
}

/** A token that was never given out belongs to no row. */
export function decodeToken(text: string): ClaimPlace {
  const [, seq, token] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  return seq === undefined || token === undefined || Number(token) === 0
    ? { seq: -1, token: -1 }
    : { seq: Number(seq), token: Number(token) };
}

export function outcomeArrays(
  outcomes: readonly OutboxOutcome[],
  places: readonly ClaimPlace[],
): readonly unknown[] {
  return [
    places.map(({ seq }) => seq),
    places.map(({ token }) => token),
    outcomes.map(({ kind }) => kind),
    outcomes.map((each) => ('error' in each ? each.error : null)),
    outcomes.map(dueMs),
  ];
}

function dueMs(outcome: OutboxOutcome): number | null {
  if (outcome.kind === 'failed') return outcome.nextDueAt.getTime();
  return outcome.kind === 'released' ? (outcome.dueAt?.getTime() ?? null) : null;
}

export function toClaimed(row: Row): ClaimedMessage {
  const [, seq, token] = row;
  return toClaimedCells(row.slice(4), encodeToken(seq, token));
}

/** From the attempts on, both ways of giving messages out have the same cells. */
export function toClaimedCells(cells: Row, token: string): ClaimedMessage {
  const [attempts, starts, lockedAt, dueAt, lastError, id, stream, event] = cells;
  const { 8: integrationType, 9: eventType, 10: payload, 11: headers, 12: tenantId } = cells;
  const { 13: userId, 14: correlationId, 15: orderingKey, 16: maxAttempts, 17: createdAt } = cells;
  return {
    id: String(id),
    token,
    starts: Number(starts),
    sourceStreamId: String(stream),
    sourceEventId: String(event),
    integrationType: String(integrationType),
    eventType: String(eventType),
    payload: JSON.parse(String(payload)) as Record<string, unknown>,
    headers: toHeaders(headers),
    tenantId: toText(tenantId),
    userId: toText(userId),
    correlationId: toText(correlationId),
    orderingKey: toText(orderingKey),
    dueAt: new Date(Number(dueAt)),
    attempts: Number(attempts),
    maxAttempts: Number(maxAttempts),
    status: 'CLAIMED',
    lockedAt: toDate(lockedAt),
    lockedBy: undefined,
    createdAt: new Date(Number(createdAt)),
    updatedAt: new Date(Number(lockedAt)),
    sentAt: undefined,
    lastError: toText(lastError),
  };
}

export function toMessage(row: Row): OutboxMessage {
  const [id, stream, event, integrationType, eventType, payload, headers, tenantId, userId] = row;
  const { 9: correlationId, 10: orderingKey, 11: dueAt, 12: attempts, 13: maxAttempts } = row;
  const { 14: status, 15: lockedAt, 16: lockedBy, 17: createdAt, 18: updatedAt } = row;
  const { 19: sentAt, 20: lastError } = row;
  return {
    id: String(id),
    sourceStreamId: String(stream),
    sourceEventId: String(event),
    integrationType: String(integrationType),
    eventType: String(eventType),
    payload: JSON.parse(String(payload)) as Record<string, unknown>,
    headers: toHeaders(headers),
    tenantId: toText(tenantId),
    userId: toText(userId),
    correlationId: toText(correlationId),
    orderingKey: toText(orderingKey),
    dueAt: new Date(Number(dueAt)),
    attempts: Number(attempts),
    maxAttempts: Number(maxAttempts),
    status: String(status) as OutboxStatus,
    lockedAt: toDate(lockedAt),
    lockedBy: toText(lockedBy),
    createdAt: new Date(Number(createdAt)),
    updatedAt: new Date(Number(updatedAt)),
    sentAt: toDate(sentAt),
    lastError: toText(lastError),
  };
}

function toText(cell: Cell): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell);
}

function toDate(cell: Cell): Date | undefined {
  return cell === null || cell === undefined ? undefined : new Date(Number(cell));
}

function toHeaders(cell: Cell): Readonly<Record<string, unknown>> | undefined {
  return cell === null || cell === undefined
    ? undefined
    : (JSON.parse(String(cell)) as Record<string, unknown>);
}
