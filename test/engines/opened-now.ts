// A store on a server that contains events of others: reads from the start begin at the time of opening, so that cases
// for an empty store run on it.

import type { KurrentEngine } from '../../src/engines/kurrentdb/index.ts';
import {
  startPosition,
  type EventReader,
  type EventStore,
  type Position,
} from '../../src/store/index.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';

const starts = new WeakMap<EventStore, Position>();

/** `like`: a store whose start this one has, too. */
export async function openedNow(db: KurrentEngine, like?: EventStore): Promise<EventStore> {
  const store: EventStore = ownedRole(db, 'store');
  const known = like === undefined ? undefined : starts.get(like);
  const start = known ?? (await store.head());
  const after = (given: Position | undefined): Position =>
    given === undefined || given === startPosition ? start : given;
  const view: EventStore = Object.assign(Object.create(store) as EventStore, {
    readAll: (options: Parameters<EventStore['readAll']>[0] = {}) =>
      options.direction === 'backwards'
        ? newerThan(start, store.readAll(options))
        : store.readAll({ ...options, after: after(options.after) }),
    subscribe: (options: Parameters<EventStore['subscribe']>[0] = {}) =>
      store.subscribe({
        ...options,
        after: options.after === 'end' ? 'end' : after(options.after),
      }),
  });
  starts.set(view, start);
  return view;
}

/** Ends a backwards read at the position. */
function newerThan(start: Position, reader: EventReader): EventReader {
  async function* pages() {
    for await (const page of reader.pages()) {
      const newer = page.filter(({ position }) => position > start);
      if (newer.length > 0) yield newer;
      if (newer.length < page.length) return;
    }
  }
  async function* events() {
    for await (const page of pages()) yield* page;
  }
  return { pages, toArray: () => Array.fromAsync(events()), [Symbol.asyncIterator]: events };
}
