// Which generation of a checkpoint or of the documents of a read model is current, recorded in the event store. An engine
// that may lose its data keeps the mark of the generation next to the data: a missing mark, or another one, shows a loss.

import { systemClock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import type { EventStore } from '../store/event-store.ts';
import { systemEvent } from '../store/system-stream.ts';

interface Generation {
  readonly mark: string;
  /** The number of shards of a subscription. */
  readonly shards?: number | undefined;
}

/** Marks next to data that an engine may lose. */
export interface GenerationMarks<Key> {
  read(key: Key): Promise<string | undefined>;
  /** Stores the mark unless one exists; returns the stored mark. */
  create(key: Key, mark: string): Promise<string>;
  replace(key: Key, mark: string): Promise<void>;
  /** Calls the listener when the connection is restored. Returns a function that ends the calls. */
  onRestored(listener: () => void): () => void;
}

export interface Generations {
  /** As this process knows it: another process may have recorded a later one. */
  known(key: string): Generation | undefined;
  /** Reads what other processes have recorded. */
  refresh(): Promise<ReadonlyMap<string, Generation>>;
  /** Returns false, without a record, unless the mark of the current generation is `before`. */
  replace(key: string, before: string | undefined, next: Generation): Promise<boolean>;
}

/** Without $: only administrators of a KurrentDB server may write to streams whose name starts with $. */
const stream = 'millrace.generations';
const type = '$millrace.generation-started.v1';
const ofStore = new WeakMap<EventStore, Generations>();

/** The records of one store; all parts of a process share them. */
export function generationsOf(store: EventStore): Generations {
  const known = ofStore.get(store) ?? createGenerations(store);
  ofStore.set(store, known);
  return known;
}

function createGenerations(store: EventStore): Generations {
  const ids = createIds();
  const generations = new Map<string, Generation>();
  let revision = -1;
  let reading: Promise<void> = Promise.resolve();

  async function read(): Promise<void> {
    for await (const event of store.readStream(stream, { from: revision + 1 })) {
      if (event.revision <= revision) continue;
      revision = event.revision;
      const { key, mark, shards } = (event.payload ?? {}) as Partial<Generation> & {
        key?: unknown;
      };
      // Other clients may be allowed to append to the stream.
      const isOurs = event.type === type && typeof key === 'string' && typeof mark === 'string';
      if (isOurs) generations.set(key, { mark, shards });
    }
  }

  /** One after the other, so that the revision never moves back. */
  function catchUp(): Promise<void> {
    reading = reading.then(read, read);
    return reading;
  }

  return {
    known: (key) => generations.get(key),
    async refresh() {
      await catchUp();
      return generations;
    },
    async replace(key, before, { mark, shards }) {
      for (;;) {
        await catchUp();
        if (generations.get(key)?.mark !== before) return false;
        const payload = { key, mark, shards };
        const event = systemEvent(stream, type, {
          payload,
          eventId: ids.next(),
          clock: systemClock,
        });
        const expected = revision === -1 ? 'none' : revision;
        try {
          await store.append(stream, [event], { expected, system: true });
          await catchUp();
          return true;
        } catch (error) {
          if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
        }
      }
    },
  };
}
