// The states of streams as of the end of the log, read from their last events and cached.

import type { Collection } from 'mongodb';
import type { StreamState } from '../../store/expected-revision.ts';
import { metadataStream, metadataType } from '../../store/stream-metadata.ts';
import type { EventDocument, LogPoint } from './collections.ts';
import type { MongodbEventTypes } from './event-types.ts';

export interface MongodbStreamState extends StreamState {
  /** Whether an append restored the deleted stream: then the append defines the truncation, not the metadata. */
  readonly revived: boolean;
}

export type StreamStateMap = ReadonlyMap<string, MongodbStreamState | undefined>;

export interface StreamStates {
  /** Loads the states as of `at`, whose events must be in `events`. */
  load(streams: Iterable<string>, at: LogPoint): Promise<StreamStateMap>;
  /** Returns the states from the cache; undefined if a stream is not cached. */
  known(streams: Iterable<string>): StreamStateMap | undefined;
  /** Caches the states after a commit of this process. */
  apply(states: StreamStateMap): void;
  /** Drops the cache after a commit of another process. */
  clear(): void;
}

/** The fields of an event that change the state of a stream. */
type StreamEvent = Pick<
  EventDocument,
  'stream' | 'version' | 'position' | 'truncateBefore' | 'tombstone' | 'retention'
>;

const streamEventFields = {
  _id: 0,
  stream: 1,
  version: 1,
  position: 1,
  truncateBefore: 1,
  tombstone: 1,
  retention: 1,
} as const;

export const freshState: MongodbStreamState = {
  revision: -1,
  truncateBefore: 0,
  tombstoned: false,
  revived: false,
};

const streamsMax = 10_000;

export function createStreamStates(
  events: Collection<EventDocument>,
  types: MongodbEventTypes,
  endOfLog: () => LogPoint,
): StreamStates {
  /** The states as of the end of the log, least recently used first. */
  const cache = new Map<string, MongodbStreamState | undefined>();

  function keep(stream: string, state: MongodbStreamState | undefined): void {
    cache.delete(stream);
    cache.set(stream, state);
    const [oldest] = cache.keys();
    if (cache.size > streamsMax && oldest !== undefined) cache.delete(oldest);
  }

  async function lastOf(stream: string, { position }: LogPoint, isMetadata: boolean) {
    const [last] = await events
      .find({
        stream,
        position: { $lte: position },
        ...(isMetadata ? { eventType: metadataType, retention: { $exists: true } } : {}),
      })
      .sort({ version: -1 })
      .limit(1)
      .project<StreamEvent>(streamEventFields)
      .toArray();
    return last;
  }

  async function read(stream: string, at: LogPoint): Promise<MongodbStreamState | undefined> {
    // Most stores have no stream metadata, so the second query is not needed.
    const hasMetadata = (await types.all()).has(metadataType);
    const [last, metadata] = await Promise.all([
      lastOf(stream, at, false),
      hasMetadata ? lastOf(metadataStream(stream), at, true) : undefined,
    ]);
    return stateFrom(last, metadata);
  }

  return {
    async load(streams, at) {
      const isCurrent = (): boolean => endOfLog().commit === at.commit;
      const wanted = [...new Set(streams)];
      const states = new Map<string, MongodbStreamState | undefined>();
      const cold = wanted.filter((stream) => {
        if (!isCurrent() || !cache.has(stream)) return true;
        states.set(stream, cache.get(stream));
        return false;
      });
      const found = await Promise.all(cold.map((stream) => read(stream, at)));
      for (const [index, stream] of cold.entries()) {
        states.set(stream, found[index]);
        if (isCurrent()) keep(stream, found[index]);
      }
      return states;
    },
    known(streams) {
      const states = new Map<string, MongodbStreamState | undefined>();
      for (const stream of streams) {
        if (!cache.has(stream)) return undefined;
        states.set(stream, cache.get(stream));
      }
      return states;
    },
    apply(states) {
      for (const [stream, state] of states) keep(stream, state);
    },
    clear: () => cache.clear(),
  };
}

/** The last event holds revision and tombstone, the latest metadata the retention; the later one wins. */
export function stateFrom(
  last: StreamEvent | undefined,
  metadata: StreamEvent | undefined,
): MongodbStreamState | undefined {
  if (last === undefined && metadata === undefined) return undefined;
  const { truncateBefore = 0, maxCount, maxAgeSeconds } = metadata?.retention ?? {};
  const revivedAt =
    (last?.position ?? 0) > (metadata?.position ?? 0) ? last?.truncateBefore : undefined;
  return {
    revision: (last?.version ?? 0) - 1,
    truncateBefore: revivedAt ?? truncateBefore,
    ...(maxCount === undefined ? {} : { maxCount }),
    ...(maxAgeSeconds === undefined ? {} : { maxAgeSeconds }),
    tombstoned: last?.tombstone === true,
    revived: revivedAt !== undefined,
  };
}
