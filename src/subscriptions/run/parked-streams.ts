// Parked streams: their events wait in the database. New events of these streams are stored there too, in batches.

import type { Position } from '../../store/position.ts';
import type { Fence, ParkedStream, WaitingEvents } from '../subscription-storage.ts';
import type { LaneItem } from './lane-work.ts';

interface ParkedState {
  buffer: LaneItem[];
  /** Retry time to write with the next batch. */
  due: number | undefined;
  isDraining: boolean;
  /** Last event that this drain processed; the feed may deliver it again. */
  drainedUpTo: Position | undefined;
  /** New events stay in the buffer until `unblock` has decided. */
  isClosing: boolean;
}

interface PendingWrite {
  readonly parked: ParkedState;
  readonly buffer: LaneItem[];
  readonly due: number | undefined;
}

export interface ParkedStreams {
  /** Buffers the item and returns true if its stream is parked. */
  keep(item: LaneItem): boolean;
  /** Moves items from memory to the database. */
  spill(stream: string, items: readonly LaneItem[], dueAtMs: number): void;
  /** Registers a stream that has waiting events in the database. */
  add(stream: string): void;
  /** Returns false if the stream is already being drained. */
  beginDrain(stream: string): boolean;
  drained(stream: string, position: Position): void;
  endDrain(stream: string): void;
  /** Unparks an empty stream and returns its buffered items; undefined if more events wait. */
  close(stream: string): Promise<readonly LaneItem[] | undefined>;
  /** Writes the buffered items. */
  flush(): Promise<void>;
  readonly buffered: number;
  readonly size: number;
}

export interface ParkedStreamsOptions {
  readonly fence: Fence;
  readonly waiting: WaitingEvents;
  /** The database stores the event, so the checkpoint may pass it. */
  readonly onStored: (item: LaneItem) => void;
}

export function createParkedStreams({
  fence,
  waiting,
  onStored,
}: ParkedStreamsOptions): ParkedStreams {
  const streams = new Map<string, ParkedState>();
  let buffered = 0;
  let flushing: Promise<void> = Promise.resolve();

  const entry = (stream: string): ParkedState => {
    let parked = streams.get(stream);
    if (parked === undefined) {
      parked = {
        buffer: [],
        due: undefined,
        isDraining: false,
        drainedUpTo: undefined,
        isClosing: false,
      };
      streams.set(stream, parked);
    }
    return parked;
  };

  async function write(): Promise<void> {
    if (buffered === 0) return;
    const batch: ParkedStream[] = [];
    const pending: PendingWrite[] = [];
    for (const [stream, parked] of streams) {
      const { buffer, due } = parked;
      if (buffer.length === 0 || parked.isClosing) continue;
      pending.push({ parked, buffer, due });
      parked.buffer = [];
      parked.due = undefined;
      const events = buffer.map(({ event: { position, eventId }, failures, history }) => ({
        position,
        eventId,
        failures,
        history,
      }));
      batch.push({ stream, due: due ?? 'queued', events });
    }
    if (batch.length === 0) return;
    try {
      await waiting.park(fence, batch);
    } catch (error) {
      for (const { parked, buffer, due } of pending) {
        parked.buffer = [...buffer, ...parked.buffer];
        parked.due ??= due;
      }
      throw error;
    }
    for (const { buffer } of pending) {
      buffered -= buffer.length;
      for (const item of buffer) onStored(item);
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
      const parked = streams.get(item.event.stream);
      if (parked === undefined) return false;
      parked.buffer.push(item);
      buffered += 1;
      return true;
    },
    spill(stream, items, dueAtMs) {
      const parked = entry(stream);
      parked.buffer.unshift(...items);
      parked.due = dueAtMs;
      buffered += items.length;
    },
    add: (stream) => void entry(stream),
    beginDrain(stream) {
      const parked = entry(stream);
      if (parked.isDraining) return false;
      parked.isDraining = true;
      return true;
    },
    drained(stream, position) {
      const parked = streams.get(stream);
      if (parked !== undefined) parked.drainedUpTo = position;
    },
    endDrain(stream) {
      const parked = streams.get(stream);
      if (parked !== undefined) parked.isDraining = false;
    },
    async close(stream) {
      const parked = entry(stream);
      parked.isClosing = true;
      try {
        // A running flush may still store events of the stream.
        await flushing;
        if (!(await waiting.unblock(fence, stream))) return undefined;
        streams.delete(stream);
        buffered -= parked.buffer.length;
        const upTo = parked.drainedUpTo;
        const isNew = ({ event }: LaneItem): boolean => upTo === undefined || event.position > upTo;
        for (const item of parked.buffer) if (!isNew(item)) onStored(item);
        return parked.buffer.filter(isNew);
      } finally {
        parked.isClosing = false;
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
