// A small state that all processes share, as the events of one system stream: each process follows the stream, and
// decides a change on the latest state.

import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import type { EventStore } from './event-store.ts';
import type { RecordedEvent } from './recorded-event.ts';

export interface SystemStreamOptions {
  readonly clock: Clock;
  readonly observer: Observer;
  /** Called once per event, in order. Throws `STORE_CORRUPT` for an event that it cannot read. */
  readonly apply: (event: RecordedEvent) => void;
  /** Called if a process cannot read an event that another one wrote: the state is no longer complete. */
  readonly onCorrupt: () => void;
}

export interface SystemStream extends AsyncDisposable {
  /** Fires when the stream is disposed. */
  readonly signal: AbortSignal;
  /** Applies all stored events. */
  catchUp(): Promise<void>;
  /** Decides on the latest state, and decides again if another process wrote first. Returns the payload. */
  write<Payload>(
    decide: () => { readonly type: string; readonly payload: Payload },
  ): Promise<Payload>;
}

const pauseMsMax = 5_000;

export async function openSystemStream(
  store: EventStore,
  stream: string,
  { clock, observer, apply, onCorrupt }: SystemStreamOptions,
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
        observer.log?.error({ err: error, stream, failures }, 'subscription to stream failed');
        // Rejects only when the stream is disposed, which ends the loop.
        await clock.sleep(Math.min(100 * 2 ** failures, pauseMsMax), signal).catch(() => undefined);
      }
    }
  }

  await catchUp();
  const following = follow();

  return {
    signal,
    catchUp,
    async write(decide) {
      for (;;) {
        await catchUp();
        const { type, payload } = decide();
        const eventId = ids.next();
        const event = {
          type,
          eventId,
          occurredAt: new Date(clock.now()).toISOString(),
          correlationId: eventId,
          tenant: '',
          aggregate: { bc: '', type: '', id: stream },
          payload,
        };
        try {
          const expected = revision === -1 ? 'none' : revision;
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
