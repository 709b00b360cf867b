// Records of Millrace itself, such as tokens, as events of a system stream: every change is recorded, and all
// processes that follow the stream apply it.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import type { EventStore } from './event-store.ts';
import type { RecordedEvent } from './recorded-event.ts';

export interface SystemStreamOptions {
  /** Starts with `$`, like the types of its events, so that readers do not get them by accident. */
  readonly stream: string;
  /** Called once for each event, in order. Throws `STORE_CORRUPT` for an event that it cannot read. */
  readonly apply: (event: RecordedEvent) => void;
  /** An event could not be read, so later changes were not read. */
  readonly onCorrupt: () => void;
  readonly clock: Clock;
  readonly observer: Observer;
}

export interface SystemStream extends AsyncDisposable {
  /** Applies the events that other processes have written. */
  catchUp(): Promise<void>;
  /** Decides on the current state, and writes only if no other change came first. */
  write<T>(decide: () => { readonly type: string; readonly payload: T }): Promise<T>;
}

const pauseMsMax = 5_000;

/** Applies all events of the stream, and then follows it. The caller closes the store. */
export async function followSystemStream(
  store: EventStore,
  { stream, apply, onCorrupt, clock, observer }: SystemStreamOptions,
): Promise<SystemStream> {
  const ids = createIds({ clock });
  const stopping = new AbortController();
  const { signal } = stopping;
  let revision = -1;

  function take(event: RecordedEvent): void {
    if (event.revision <= revision) return;
    apply(event);
    revision = event.revision;
  }

  async function catchUp(): Promise<void> {
    for await (const event of store.readStream(stream, { from: revision + 1 })) take(event);
  }

  async function follow(): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        for await (const item of store.subscribeToStream(stream, { after: revision, signal })) {
          if (item.kind === 'events') for (const event of item.events) take(event);
          failures = 0;
        }
      } catch (error) {
        if (signal.aborted || hasCode(error, 'STORE_CLOSED')) return;
        if (hasCode(error, 'STORE_CORRUPT')) onCorrupt();
        observer.log?.error({ err: error, stream, failures }, 'system stream failed, retrying');
        const ms = Math.min(100 * 2 ** failures, pauseMsMax);
        await clock.sleep(ms, signal).catch(() => undefined);
      }
    }
  }

  await catchUp();
  const following = follow();
  return {
    catchUp,
    async write(decide) {
      for (;;) {
        await catchUp();
        const { type, payload } = decide();
        const event = systemEvent(stream, type, { payload, eventId: ids.next(), clock });
        const expected = revision === -1 ? 'none' : revision;
        try {
          await store.append(stream, [event], { expected, system: true });
          await catchUp();
          return payload;
        } catch (error) {
          if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await following;
    },
  };
}

/** The envelope of a system event, which belongs to no tenant and no aggregate. */
export function systemEvent(
  stream: string,
  type: string,
  {
    payload,
    eventId,
    correlationId = eventId,
    clock,
  }: {
    readonly payload: unknown;
    readonly eventId: string;
    readonly correlationId?: string | undefined;
    readonly clock: Clock;
  },
): DomainEventEnvelope {
  return {
    type,
    eventId,
    occurredAt: new Date(clock.now()).toISOString(),
    correlationId,
    tenant: '',
    aggregate: { bc: '', type: '', id: stream },
    payload,
  };
}
