// SQLite's rows as messages of the ledger.

import { readContent, readJobs, withCause } from '../../../outbox/create-outbox-ledger.ts';
import { outboxJobs } from '../../../outbox/outbox-job.ts';
import type {
  ClaimedMessage,
  Discarded,
  OutboxMessage,
  OutboxStatus,
} from '../../../outbox/outbox-message.ts';
import { encodeToken } from '../connection/lease-token.ts';
import type { SqlRow, SqlValue } from '../thread/protocol.ts';

/** A claimed row with the JSON of its message (`sql.ts`). */
export function toClaimed(row: SqlRow, workerId: string): ClaimedMessage {
  return withState(JSON.parse(String(row['message'])) as SqlRow, {
    token: encodeToken(row),
    starts: Number(row['starts']),
    dueAt: new Date(Number(row['due_at_ms'])),
    attempts: Number(row['attempts']),
    status: 'CLAIMED',
    lockedAt: toDate(row['locked_at_ms']),
    lockedBy: workerId,
    updatedAt: new Date(Number(row['locked_at_ms'])),
    sentAt: undefined,
    lastError: toText(row['last_error']),
  });
}

export function toMessage(row: SqlRow): OutboxMessage {
  const discarded = toText(row['discarded']);
  const message = withCause(
    withState(row, {
      dueAt: new Date(Number(row['next_due_at_ms'])),
      attempts: Number(row['attempts']),
      status: String(row['status']) as OutboxStatus,
      lockedAt: toDate(row['locked_at_ms']),
      lockedBy: toText(row['locked_by']),
      updatedAt: new Date(Number(row['updated_at_ms'])),
      sentAt: toDate(row['sent_at_ms']),
      lastError: toText(row['last_error']),
      ...(discarded === undefined ? {} : { discarded: JSON.parse(discarded) as Discarded }),
    }),
    toText(row['attempt']),
  );
  const jobs = toText(row['jobs']);
  if (jobs === undefined) return message;
  const tokenOf = (token: number): string => encodeToken({ seq: row['seq'] ?? null, token });
  return { ...message, jobs: outboxJobs(readJobs(jobs), message, tokenOf) };
}

type State = Pick<
  OutboxMessage,
  'dueAt' | 'attempts' | 'status' | 'lockedAt' | 'lockedBy' | 'updatedAt' | 'sentAt' | 'lastError'
>;

/** The columns of a message that never change, with its state. */
function withState<S extends State>(row: SqlRow, state: S): S & Omit<OutboxMessage, keyof State> {
  return {
    ...state,
    id: String(row['id']),
    sourceStreamId: String(row['source_stream_id']),
    sourceEventId: String(row['source_event_id']),
    integrationType: String(row['integration_type']),
    eventType: String(row['event_type']),
    ...readContent(row['payload'], row['headers']),
    tenantId: toText(row['tenant_id']),
    userId: toText(row['user_id']),
    correlationId: toText(row['correlation_id']),
    orderingKey: toText(row['ordering_key']),
    maxAttempts: Number(row['max_attempts']),
    createdAt: new Date(Number(row['created_at_ms'])),
  };
}

function toText(cell: SqlValue | undefined): string | undefined {
  return typeof cell === 'string' ? cell : undefined;
}

function toDate(cell: SqlValue | undefined): Date | undefined {
  return typeof cell === 'number' ? new Date(cell) : undefined;
}
