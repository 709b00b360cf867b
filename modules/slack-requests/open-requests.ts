// Requests that are queued and not done, by the store's own word: read once from the beginning, then as it grows.
// What Redis has lost, this still knows.

import type { EventStore } from 'millrace/store';
import { requestFailed, requestQueued, requestSent } from './message-request-events.ts';

export interface OpenRequest {
  readonly tenant: string;
  readonly id: string;
  /** From when on somebody should be at it. */
  readonly dueAtMs: number;
}

export interface OpenRequests {
  /** Oldest first. */
  list(signal?: AbortSignal): Promise<readonly OpenRequest[]>;
}

export function createOpenRequests(readAll: EventStore['readAll']): OpenRequests {
  const open = new Map<string, OpenRequest>();
  type Position = Awaited<ReturnType<EventStore['head']>>;
  let after: Position | undefined;

  return {
    async list(signal) {
      const filter = { types: [requestQueued.type, requestSent.type, requestFailed.type] };
      const events = readAll({
        filter,
        ...(after === undefined ? {} : { after }),
        ...(signal === undefined ? {} : { signal }),
      });
      for await (const event of events) {
        const { tenant, aggregate, occurredAt, payload, position } = event;
        const key = `${tenant} ${aggregate.id}`;
        open.delete(key);
        if (requestQueued.is(event)) {
          const { dueAt = occurredAt } = requestQueued.parse(payload);
          open.set(key, { tenant, id: aggregate.id, dueAtMs: Date.parse(dueAt) });
        }
        after = position;
      }
      return [...open.values()];
    },
  };
}
