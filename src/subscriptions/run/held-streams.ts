// Streams whose events wait in the database. New events of these streams are stored there too, in batches.

import type { Position } from '../../store/position.ts';
import type { Fence, HeldStream, WaitingEvents } from '../subscription-storage.ts';
import type { LaneItem } from './lane-work.ts';

interface Held {
  buffer: LaneItem[];
  /** Retry time to write with the next batch. */
  due: number | undefined;
  isDraining: boolean;
  /** Last event that this drain processed; the feed may deliver it again. */
  drainedUpTo: Position | undefined;
  /** New events stay in the buffer until `unblock` has decided. */
  isClosing: boolean;
}

interface Taken {
  readonly held: Held;
  readonly buffer: LaneItem[];
  readonly due: number | undefined;
}

export interface HeldStreams {
  /** Buffers the item and returns true if its stream is blocked. */
  keep(item: LaneItem): boolean;
  /** Moves items from memory to the database. */
  spill(stream: string, items: readonly LaneItem[], dueAtMs: number): void;
  /** Registers a stream that has waiting events in the database. */
  add(stream: string): void;
  /** Returns false if the stream is already being drained. */
  beginDrain(stream: string): boolean;
  drained(stream: string, position: Position): void;
  endDrain(stream: string): void;
  /** Unblocks an empty stream and returns its buffered items; undefined if more events wait. */
  close(stream: string): Promise<readonly LaneItem[] | undefined>;
  /** Writes the buffered items. */
  flush(): Promise<void>;
  readonly buffered: number;
  readonly size: number;
}

export interface HeldStreamsOptions {
  readonly fence: Fence;
  readonly waiting: WaitingEvents;
  /** The database stores the event, so the checkpoint may pass it. */
  readonly onHeld: (item: LaneItem) => void;
}

export function createHeldStreams({ fence, waiting, onHeld }: HeldStreamsOptions): HeldStreams {
  const streams = new Map<string, Held>();
  let buffered = 0;
  let flushing: Promise<void> = Promise.resolve();

  const entry = (stream: string): Held => {
    let held = streams.get(stream);
    if (held === undefined) {
      held = {
        buffer: [],
        due: undefined,
        isDraining: false,
        drainedUpTo: undefined,
        isClosing: false,
      };
      streams.set(stream, held);
    }
    return held;
  };

  async function write(): Promise<void> {
    if (buffered === 0) return;
    const batch: HeldStream[] = [];
    const taken: Taken[] = [];
    for (const [stream, held] of streams) {
      const { buffer, due } = held;
      if (buffer.length === 0 || held.isClosing) continue;
      taken.push({ held, buffer, due });
      held.buffer = [];
      held.due = undefined;
      const events = buffer.map(({ event: { position, eventId }, failures, history }) => ({
        position,
        eventId,
        failures,
        history,
      }));
      batch.push({ stream, due: due ?? 'behind', events });
    }
    if (batch.length === 0) return;
    try {
      await waiting.hold(fence, batch);
    } catch (error) {
      for (const { held, buffer, due } of taken) {
        held.buffer = [...buffer, ...held.buffer];
        held.due ??= due;
      }
      throw error;
    }
    for (const { buffer } of taken) {
      buffered -= buffer.length;
      for (const item of buffer) onHeld(item);
    }
  }

  /** Writes batches one after another, to keep the order within a stream. */
  function flush(): Promise<void> {
    const next = flushing.then(write);
    flushing = next.catch(() => undefined);
    return next;
  }

  return {
    keep(item) {
      const held = streams.get(item.event.stream);
      if (held === undefined) return false;
      held.buffer.push(item);
      buffered += 1;
      return true;
    },
    spill(stream, items, dueAtMs) {
      const held = entry(stream);
      held.buffer.unshift(...items);
      held.due = dueAtMs;
      buffered += items.length;
    },
    add: (stream) => void entry(stream),
    beginDrain(stream) {
      const held = entry(stream);
      if (held.isDraining) return false;
      held.isDraining = true;
      return true;
    },
    drained(stream, position) {
      const held = streams.get(stream);
      if (held !== undefined) held.drainedUpTo = position;
    },
    endDrain(stream) {
      const held = streams.get(stream);
      if (held !== undefined) held.isDraining = false;
    },
    async close(stream) {
      const held = entry(stream);
      held.isClosing = true;
      try {
        // A running flush may still store events of the stream.
        await flushing;
        if (!(await waiting.unblock(fence, stream))) return undefined;
        streams.delete(stream);
        buffered -= held.buffer.length;
        const upTo = held.drainedUpTo;
        const isNew = ({ event }: LaneItem): boolean => upTo === undefined || event.position > upTo;
        for (const item of held.buffer) if (!isNew(item)) onHeld(item);
        return held.buffer.filter(isNew);
      } finally {
        held.isClosing = false;
      }
    },
    flush,
    get buffered() {
      return buffered;
    },
    get size() {
      return streams.size;
    },
  };
}
