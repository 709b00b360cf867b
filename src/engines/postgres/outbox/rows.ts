// Converts messages and claims of the ledger to PostgreSQL rows and back.

import type { OutboxRow } from '../../../outbox/check-outbox.ts';
import {
  attemptJson,
  dueMsOf,
  readContent,
  readJobs,
  withCause,
} from '../../../outbox/create-outbox-ledger.ts';
import { outboxJobs } from '../../../outbox/outbox-job.ts';
import type { OutboxOutcome } from '../../../outbox/outbox-ledger.ts';
import type {
  ClaimedMessage,
  Discarded,
  OutboxClaim,
  OutboxMessage,
  OutboxStatus,
} from '../../../outbox/outbox-message.ts';
import type { Row } from '../connection/connection.ts';
import { notATransaction } from '../transactions/transaction-query.ts';

type Cell = Row[number] | undefined;

export interface Source {
  readonly id: string;
  readonly source_stream_id: string;
  readonly source_event_id: string;
  readonly integration_type: string;
}

/** Reads a row of a library that may have renamed the columns, for example to `sourceStreamId`. */
export function columnsOf(row: object): Source {
  const cells = new Map(
    Object.entries(row).map(([name, cell]) => [name.replaceAll('_', '').toLowerCase(), cell]),
  );
  const text = (name: string): string => {
    const cell: unknown = cells.get(name.replaceAll('_', ''));
    if (typeof cell === 'string') return cell;
    throw notATransaction('enqueueIn', `the rows of the query have no string column '${name}'`);
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
      ...sourceOf(row),
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
    })),
  );
}

export function sourceOf(row: OutboxRow): Omit<Source, 'id'> {
  return {
    source_stream_id: row.sourceStreamId,
    source_event_id: row.sourceEventId,
    integration_type: row.integrationType,
  };
}

export function sourceKey(source: Omit<Source, 'id'>): string {
  return JSON.stringify([source.source_stream_id, source.source_event_id, source.integration_type]);
}

/** The token of a claim contains the row's number: settling needs no lookup by message id. */
function encodeToken(seq: Cell, token: Cell): string {
  return `${Number(seq)}.${Number(token)}`;
}

/** Returns numbers as strings for the database; an invalid token becomes a row that does not exist. */
function decodeToken(text: string): readonly [seq: string, token: string] {
  const [, seq, token] = /^([1-9]\d{0,14})\.([1-9]\d{0,14})$/.exec(text) ?? [];
  return seq === undefined || token === undefined ? ['-1', '-1'] : [seq, token];
}

export function claimArrays(
  claims: readonly OutboxClaim[],
): readonly [seqs: string, tokens: string] {
  const tokens = claims.map(({ token }) => decodeToken(token));
  return [`{${tokens.map(([seq]) => seq).join()}}`, `{${tokens.map(([, token]) => token).join()}}`];
}

/** Returns a check whether rows (seq, token) include a claim. Claims with invalid tokens count as the row -1. */
export function includesClaim(rows: readonly Row[]): (claim: OutboxClaim) => boolean {
  if (rows.length === 0) return () => false;
  const tokens = new Set(rows.map(([seq, token]) => encodeToken(seq, token)));
  return ({ token }) => tokens.has(decodeToken(token).join('.'));
}

/** One array per field; the arrays of errors and due times are empty if all messages were sent. */
export function outcomeArrays(outcomes: readonly OutboxOutcome[]): readonly unknown[] {
  const isSent = outcomes.every(({ kind }) => kind === 'sent');
  return [
    ...claimArrays(outcomes.map(({ claim }) => claim)),
    `{${outcomes.map(({ kind }) => kind).join()}}`,
    isSent ? [] : outcomes.map((outcome) => ('error' in outcome ? outcome.error : null)),
    isSent ? [] : outcomes.map(dueMsOf),
  ];
}

/** The parameters of `settleWithAttemptsSql` after those of `settleSql`; undefined: there is no attempt to store. */
export function attemptArrays(
  outcomes: readonly OutboxOutcome[],
): readonly [seqs: string, tokens: string, attempts: readonly string[]] | undefined {
  const found = outcomes.flatMap((outcome) => {
    const attempt = attemptJson(outcome);
    return attempt === null ? [] : [{ claim: outcome.claim, attempt }];
  });
  if (found.length === 0) return undefined;
  return [...claimArrays(found.map(({ claim }) => claim)), found.map(({ attempt }) => attempt)];
}

export function toClaimed(row: Row, workerId: string): ClaimedMessage {
  const { 16: lockedAt, 17: seq, 18: token, 20: starts } = row;
  return withMessage(row, {
    token: encodeToken(seq, token),
    starts: Number(starts),
    status: 'CLAIMED',
    lockedBy: workerId,
    updatedAt: new Date(Number(lockedAt)),
    sentAt: undefined,
  });
}

/** The token that the renewal replaced. */
export function previousToken(row: Row): string {
  return encodeToken(row[17], row[19]);
}

export function toMessage(row: Row): OutboxMessage {
  const { 17: status, 18: lockedBy, 19: updatedAt, 20: sentAt, 21: seq, 22: jobs } = row;
  const listed = withMessage(row, {
    status: String(status) as OutboxStatus,
    lockedBy: toText(lockedBy),
    updatedAt: new Date(Number(updatedAt)),
    sentAt: toDate(sentAt),
  });
  const discarded = toText(row[24]);
  const message = withCause(
    discarded === undefined ? listed : { ...listed, discarded: JSON.parse(discarded) as Discarded },
    toText(row[23]),
  );
  if (jobs === null || jobs === undefined) return message;
  return {
    ...message,
    jobs: outboxJobs(readJobs(String(jobs)), message, (token) => encodeToken(seq, token)),
  };
}

type State = Pick<OutboxMessage, 'status' | 'lockedBy' | 'updatedAt' | 'sentAt'>;

/** The first 17 columns are the same for claimed and listed rows; the rest is the state. */
function withMessage<S extends State>(row: Row, state: S): S & Omit<OutboxMessage, keyof State> {
  const [id, stream, event, integrationType, eventType, payload, headers, tenantId, userId] = row;
  const { 9: correlationId, 10: orderingKey, 11: dueAt, 12: attempts, 13: maxAttempts } = row;
  const { 14: createdAt, 15: lastError, 16: lockedAt } = row;
  return {
    ...state,
    id: String(id),
    sourceStreamId: String(stream),
    sourceEventId: String(event),
    integrationType: String(integrationType),
    eventType: String(eventType),
    ...readContent(payload, headers),
    tenantId: toText(tenantId),
    userId: toText(userId),
    correlationId: toText(correlationId),
    orderingKey: toText(orderingKey),
    dueAt: new Date(Number(dueAt)),
    attempts: Number(attempts),
    maxAttempts: Number(maxAttempts),
    createdAt: new Date(Number(createdAt)),
    lastError: toText(lastError),
    lockedAt: toDate(lockedAt),
  };
}

function toText(cell: Cell): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell);
}

function toDate(cell: Cell): Date | undefined {
  return cell === null || cell === undefined ? undefined : new Date(Number(cell));
}
