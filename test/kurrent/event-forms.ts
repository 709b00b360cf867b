// Events of an account as services write them that follow the naming document, the outbox document, or neither.

import { randomUUID } from 'node:crypto';
import type { JSONEventData } from '@kurrent/kurrentdb-client';
import { event } from './official-clients.ts';

export const deposited = 'account.deposited.v1';
export const occurredAt = '2026-03-01T10:00:00.000Z';

export const streamOf = (id: string): string => `banking.account.v1-core-${id}`;

/** §5 of the naming document: the envelope as data. */
export function envelopeEvent(
  id: string,
  amount: number,
  more: Readonly<Record<string, unknown>> = {},
): JSONEventData {
  const data = {
    type: deposited,
    eventId: randomUUID(),
    occurredAt,
    correlationId: `flow-${id}`,
    causationId: 'command-1',
    tenant: 'core',
    aggregate: { bc: 'banking', type: 'account', id },
    user: { id: 'u-1', name: 'Ada' },
    headers: { source: 'MakerModule' },
    payload: { amount },
    ...more,
  };
  return event({ type: deposited, data });
}

/** §3.3 of the outbox document: the payload as data, `EventStoreMetaProps` as metadata. */
export function metadataEvent(id: string, amount: number, tenantId = 'core'): JSONEventData {
  const metadata = {
    correlationId: `flow-${id}`,
    tenantId,
    userId: 'u-2',
    source: 'ledger-service',
    occurredAt,
    headers: { region: 'za' },
  };
  return event({ type: deposited, data: { amount }, metadata });
}

export const plainEvent = (amount: number): JSONEventData =>
  event({ type: deposited, data: { amount } });
