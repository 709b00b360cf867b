// Mirrors appended events to user interfaces: to listeners in this process and to a bus such as Redis
// Pub/Sub. The mirror starts at the head, stores nothing, and drops messages that it cannot deliver. For guaranteed
// delivery use a subscription with a checkpoint.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { createLifecycle, withLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { EventStore } from '../store/event-store.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { createMirrorBuffer, type MirrorOutlet } from './run/mirror-buffer.ts';

export type MirrorListener = (message: MirrorMessage) => void;

export interface LiveMirrorOptions {
  /** Receives the messages in addition to the listeners, for example `mirror` of Redis. */
  readonly outlet?: MirrorOutlet | undefined;
  readonly filter?: EventFilter | undefined;
  /** Maximum number of messages waiting for the outlet; the oldest are dropped. Default: 1,000. */
  readonly bufferMax?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export interface LiveMirror extends Lifecycle {
  /** Messages dropped because the outlet was slow or unavailable. */
  readonly dropped: number;
  /** Adds a listener and returns a function that removes it. Errors of a listener are logged. */
  listen(listener: MirrorListener): () => void;
}

/** Defaults and limits of the mirror. */
export const liveMirrorLimits = {
  bufferMax: 1_000,
  bufferCharsMax: 16_777_216,
  /** Messages per publish call. */
  batchMax: 100,
  /** Pause after a failed publish call. */
  pauseMs: 500,
} as const;

/**
 * Creates a mirror; `start` starts it.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createLiveMirror } from 'millrace/projections';
 *
 * await using db = openMemory();
 * await using mirror = createLiveMirror(db.store);
 * mirror.listen(({ eventType, aggregateId }) => console.log(eventType, aggregateId));
 * await mirror.start();
 */
export function createLiveMirror(store: EventStore, options: LiveMirrorOptions = {}): LiveMirror {
  const { outlet, filter, clock = systemClock, observer = silentObserver } = options;
  const listeners = new Set<MirrorListener>();
  const buffer =
    outlet === undefined
      ? undefined
      : createMirrorBuffer(outlet, {
          bufferMax: options.bufferMax ?? liveMirrorLimits.bufferMax,
          bufferCharsMax: liveMirrorLimits.bufferCharsMax,
          batchMax: liveMirrorLimits.batchMax,
          pauseMs: liveMirrorLimits.pauseMs,
          clock,
          observer,
        });
  let running: { readonly end: AbortController; readonly done: Promise<void> } | undefined;

  function notifyListeners(message: MirrorMessage): void {
    for (const listener of listeners) {
      try {
        listener(message);
      } catch (err) {
        const { eventId, eventType } = message;
        observer.log?.warn({ eventId, eventType, err }, 'live mirror listener failed');
      }
    }
  }

  async function follow(after: Position, signal: AbortSignal): Promise<void> {
    try {
      for await (const item of store.subscribe({ after, signal, filter })) {
        if (item.kind !== 'events') continue;
        for (const event of item.events) {
          const message = mirrorMessage(event);
          notifyListeners(message);
          buffer?.add({ channel: mirrorChannel(event.type), text: JSON.stringify(message) });
        }
      }
    } catch (err) {
      if (!signal.aborted) observer.log?.error({ err }, 'live mirror failed');
    }
  }

  const lifecycle = createLifecycle({
    async start(signal) {
      const after = await store.head();
      if (signal.aborted) return;
      const end = new AbortController();
      const passing = buffer?.run(end.signal);
      const done = Promise.all([follow(after, end.signal), passing]).then(() => undefined);
      running = { end, done };
    },
    async stop() {
      running?.end.abort();
      await running?.done;
      running = undefined;
    },
  });

  return withLifecycle(lifecycle, {
    get dropped() {
      return buffer?.dropped ?? 0;
    },
    listen(listener: MirrorListener) {
      // A listener that is added twice is called twice.
      const own: MirrorListener = (message) => listener(message);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
  });
}

export interface MirrorMessage {
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateId: string;
  readonly payload: unknown;
  readonly metadata: {
    readonly correlationId: string;
    readonly causationId: string | null;
    readonly userId: string | null;
  };
}

/**
 * The mirror channel of an event type.
 *
 * @example
 * import { mirrorChannel } from 'millrace/projections';
 *
 * console.log(mirrorChannel('task.status-changed.v1')); // events.task.status-changed.v1
 */
export function mirrorChannel(eventType: string): string {
  return `events.${eventType}`;
}

function mirrorMessage(event: RecordedEvent): MirrorMessage {
  const { eventId, type, aggregate, payload, correlationId, causationId, user } = event;
  return {
    eventId,
    eventType: type,
    aggregateId: aggregate.id,
    payload,
    metadata: { correlationId, causationId: causationId ?? null, userId: user?.id ?? null },
  };
}
