// Limits the concurrent calls of one destination. As many messages as there are places wait a moment for one; the
// others return to the ledger, each with a different due time, so that a slow destination does not occupy the dispatcher.

import type { Clock } from '../foundation/clock.ts';

type Entered =
  /** Only an attempted call counts for the average duration. */
  | { readonly kind: 'in'; readonly leave: (call: { readonly isTried: boolean }) => void }
  | { readonly kind: 'full'; readonly backInMs: number };

export interface CallPlaces {
  /** Rejects when the signal fires. */
  enter(key: string, placesMax: number, signal: AbortSignal): Promise<Entered>;
  /** The number of destinations in memory. */
  readonly size: number;
}

interface Room {
  inside: number;
  readonly waiting: Set<() => void>;
  /** A moving average of the duration of calls. */
  tookMs: number;
  /** The return time of the last postponed message. */
  lastReturnMs: number;
}

const placeLimits = {
  /** The assumed duration before the first call has ended. */
  tookMsFirst: 100,
  /** The longest delay, because the estimate may be wrong. */
  backInMsMax: 5_000,
} as const;

export function createCallPlaces(clock: Clock, waitMsMax: number): CallPlaces {
  const rooms = new Map<string, Room>();

  function roomOf(key: string): Room {
    const known = rooms.get(key);
    if (known !== undefined) return known;
    const room = {
      inside: 0,
      waiting: new Set<() => void>(),
      lastReturnMs: 0,
      tookMs: placeLimits.tookMsFirst,
    };
    rooms.set(key, room);
    return room;
  }

  function placeIn(key: string, room: Room): Entered {
    const sinceMs = clock.now();
    return {
      kind: 'in',
      leave({ isTried }) {
        if (isTried) room.tookMs += (clock.now() - sinceMs - room.tookMs) / 8;
        const [next] = room.waiting;
        // The place goes to the first waiting message.
        if (next !== undefined) return next();
        room.inside -= 1;
        if (room.inside === 0) rooms.delete(key);
      },
    };
  }

  /** Each postponed message gets a later return time than the one before. */
  function postpone(room: Room, placesMax: number): Entered {
    const nowMs = clock.now();
    const endMs = Math.max(room.lastReturnMs, nowMs) + room.tookMs / placesMax;
    room.lastReturnMs = Math.min(endMs, nowMs + placeLimits.backInMsMax);
    return { kind: 'full', backInMs: Math.ceil(room.lastReturnMs - nowMs) };
  }

  return {
    get size() {
      return rooms.size;
    },
    async enter(key, placesMax, signal) {
      const room = roomOf(key);
      if (room.inside < placesMax) {
        room.inside += 1;
        return placeIn(key, room);
      }
      if (room.waiting.size >= placesMax) return postpone(room, placesMax);
      const woken = new AbortController();
      let hasPlace = false;
      const wake = (): void => {
        hasPlace = true;
        room.waiting.delete(wake);
        woken.abort();
      };
      room.waiting.add(wake);
      try {
        await clock.sleep(waitMsMax, AbortSignal.any([signal, woken.signal]));
      } catch (error) {
        if (!hasPlace) throw error;
      } finally {
        room.waiting.delete(wake);
      }
      return hasPlace ? placeIn(key, room) : postpone(room, placesMax);
    },
  };
}
