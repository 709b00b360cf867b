// What the outbox tells the outside: the operations, phases and metrics that its document names. Ids only,
// never payloads.

import type { Observer } from '../foundation/observer.ts';

export interface Traced {
  readonly correlationId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly userId?: string | undefined;
}

type Phase =
  | 'START'
  | 'SUCCESS'
  | 'DUPLICATE'
  | 'ERROR'
  | 'SENT'
  | 'FAILED'
  | 'DEAD'
  | 'STALE'
  | 'PAUSED';

type Operation =
  | 'OUTBOX_ENQUEUE'
  | 'OUTBOX_CLAIM'
  | 'OUTBOX_ENQUEUE_JOB'
  | 'OUTBOX_DIRECT_SEND'
  | 'OUTBOX_DELIVER';

const levels: Readonly<Record<Phase, 'debug' | 'info' | 'warn' | 'error'>> = {
  START: 'debug',
  SUCCESS: 'debug',
  SENT: 'debug',
  DUPLICATE: 'info',
  PAUSED: 'info',
  FAILED: 'warn',
  STALE: 'warn',
  DEAD: 'error',
  ERROR: 'error',
};

export function logOutbox(
  { log }: Observer,
  what: { readonly source: string; readonly operation: Operation; readonly phase: Phase },
  { correlationId, tenantId, userId }: Traced,
  more: object = {},
): void {
  if (log === undefined) return;
  const fields = { correlationId, tenantId, ...(userId === undefined ? {} : { userId }) };
  log[levels[what.phase]]({ ...fields, ...what, ...more }, 'outbox');
}
