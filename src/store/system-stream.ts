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
  /** The stream was removed, or an event cannot be read: nothing that was applied can be trusted. */
  readonly onLost: () => void;
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

/**
 * The name under which a system stream continues: the first of `<stream>`, `<stream>-2`, … that is not tombstoned. A tombstone
 * is final, so all processes find the same name.
 */
export async function liveSystemStream(
  store: Pick<EventStore, 'streamInfo'>,
  stream: string,
  observer: Observer,
): Promise<string> {
  for (let number = 1; ; number += 1) {
    const name = numbered(stream, number);
    if ((await store.streamInfo(name))?.deleted !== 'tombstone') return name;
    reportLost(observer, name, numbered(stream, number + 1));
  }
}

function numbered(stream: string, number: number): string {
  return number === 1 ? stream : `${stream}-${number}`;
}

function reportLost(observer: Observer, stream: string, next: string, error?: unknown): void {
  observer.log?.error({ stream, next, err: error }, 'system stream lost, its records are ignored');
}

/**
 * Applies all events of the stream, and then follows it. A stream that was removed or has an unreadable event is ignored: the
 * records start again under another name. The caller closes the store.
 */
export async function followSystemStream(
  store: EventStore,
  { stream: base, apply, onLost, clock, observer }: SystemStreamOptions,
): Promise<SystemStream> {
  const ids = createIds({ clock });
  const stopping = new AbortController();
  const { signal } = stopping;
  let stream = base;
  let revision = -1;

  async function open(): Promise<void> {
    for (let number = 1; ; number += 1) {
      stream = numbered(base, number);
      try {
        return await catchUp();
      } catch (error) {
        if (!hasCode(error, 'STORE_CORRUPT') && !hasCode(error, 'STREAM_DELETED')) throw error;
        onLost();
        revision = -1;
        reportLost(observer, stream, numbered(base, number + 1), error);
      }
    }
  }

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
        if (hasCode(error, 'STORE_CORRUPT') || hasCode(error, 'STREAM_DELETED')) onLost();
        observer.log?.error({ err: error, stream, failures }, 'system stream failed, retrying');
        const ms = Math.min(100 * 2 ** failures, pauseMsMax);
        await clock.sleep(ms, signal).catch(() => undefined);
      }
    }
  }

  await open();
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
