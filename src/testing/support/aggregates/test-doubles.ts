// Stores, clocks and observers shared by the aggregate tests.

import { createEnvelope, type NewEvent } from '../../../contracts/envelope.ts';
import { parseStreamName } from '../../../contracts/stream-name.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { EventReader, EventStore } from '../../../store/event-store.ts';
import type { SnapshotStore } from '../../../aggregates/snapshot-store.ts';

export interface Taps {
  /** Called before each append; may append another event first, or throw. */
  readonly beforeAppend?: ((stream: string) => Promise<void> | void) | undefined;
  /** Called after each successful append; throwing here loses the result, not the events. */
  readonly afterAppend?: (() => void) | undefined;
  readonly onRead?: ((events: number) => Promise<void> | void) | undefined;
  readonly onFind?: (() => Promise<void> | void) | undefined;
}

export function tapped(store: EventStore, taps: Taps): EventStore {
  return {
    ...store,
    async append(stream, events, options) {
      await taps.beforeAppend?.(stream);
      const result = await store.append(stream, events, options);
      taps.afterAppend?.();
      return result;
    },
    readStream(stream, options) {
      const reader = store.readStream(stream, options);
      async function* pages(): ReturnType<EventReader['pages']> {
        for await (const page of reader.pages()) {
          await taps.onRead?.(page.length);
          yield page;
        }
      }
      return { ...reader, pages };
    },
    async findEvent(stream, eventId) {
      await taps.onFind?.();
      return store.findEvent(stream, eventId);
    },
  };
}

/** A sleep returns immediately and advances the clock. */
export function instantClock(): Clock & { readonly slept: number[] } {
  let nowMs = Date.UTC(2025, 8, 30, 10);
  const slept: number[] = [];
  return {
    slept,
    now: () => nowMs,
    async sleep(ms) {
      slept.push(ms);
      nowMs += ms;
    },
  };
}

/** Appends without the command handler, like another writer. */
export async function appendDirectly(
  store: EventStore,
  stream: string,
  events: readonly NewEvent[],
  headers: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const { bc, agg, tenant, id } = parseStreamName(stream);
  const context = { tenant, aggregate: { bc, type: agg, id }, headers };
  await store.append(
    stream,
    events.map((event) => createEnvelope(event, context)),
  );
}

/** Collects log messages, and counts by name and outcome. */
export function listeningObserver(): Observer & {
  readonly logged: string[];
  readonly counted: Map<string, number>;
} {
  const logged: string[] = [];
  const counted = new Map<string, number>();
  const log = (_fields: object, message: string): void => void logged.push(message);
  return {
    logged,
    counted,
    count(name, { outcome = '' }, by = 1) {
      const key = `${name} ${outcome}`.trimEnd();
      counted.set(key, (counted.get(key) ?? 0) + by);
    },
    log: { debug: log, info: log, warn: log, error: log },
  };
}

export function failingSnapshots(): SnapshotStore {
  const fail = async (): Promise<never> => {
    throw new Error('snapshot store failed');
  };
  return { load: fail, save: fail };
}
