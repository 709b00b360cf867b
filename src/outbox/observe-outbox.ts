// Logs and spans of the outbox: the operations, phases and metrics of the outbox document. Ids only, never payloads.

import { traceOf, type Observer } from '../foundation/observer.ts';
import type { EnqueueOutboxProps } from './outbox-message.ts';

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
  | 'PAUSED'
  | 'RESTORED';

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
  RESTORED: 'info',
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
  log?.[levels[what.phase]]({ correlationId, tenantId, userId, ...what, ...more }, 'outbox');
}

/** A span for each message; the message carries its context to the delivery. */
export function observeEnqueue(
  { span: startSpan }: Observer,
  items: readonly EnqueueOutboxProps[],
): {
  readonly items: readonly EnqueueOutboxProps[];
  readonly ended: (at: number, outcome: 'new' | 'duplicate') => void;
  readonly failed: (error: unknown) => void;
} {
  if (startSpan === undefined) return { items, ended: () => undefined, failed: () => undefined };
  const spans = items.map((item) =>
    startSpan(
      'enqueue message',
      {
        integrationType: item.integrationType,
        eventType: item.eventType,
        eventId: item.sourceEventId,
        stream: item.sourceStreamId,
        tenant: item.tenantId,
        correlationId: item.correlationId,
      },
      traceOf(item.headers),
    ),
  );
  return {
    items: items.map((item, at) => ({
      ...item,
      headers: { ...item.headers, ...spans[at]?.context },
    })),
    ended(at, outcome) {
      spans[at]?.set({ outcome });
      spans[at]?.end();
    },
    failed(error) {
      for (const span of spans) {
        span.fail(error);
        span.end();
      }
    },
  };
}
