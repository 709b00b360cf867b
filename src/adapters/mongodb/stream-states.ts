// What is known of streams, as of the end of the log: read from their last events, kept while
// nothing newer was committed to them.

import type { Collection } from 'mongodb';
import type { StreamState } from '../../store/expected-revision.ts';
import { metadataStream, metadataType } from '../../store/stream-metadata.ts';
import type { LogPoint } from './commit-log.ts';
import type { EventDocument } from './mongodb-schema.ts';
import type { MongodbTypes } from './mongodb-types.ts';

export interface MongodbStreamState extends StreamState {
  /** An append brought the stream back: its truncation is that append's, not its metadata's. */
  readonly revived: boolean;
}

export type StreamStateMap = ReadonlyMap<string, MongodbStreamState | undefined>;

export interface StreamStates {
  readonly size: number;
  /** As of `at`, which must lie in `events`. */
  load(streams: Iterable<string>, at: LogPoint): Promise<StreamStateMap>;
  /** Those that are known without asking; undefined when one is not. */
  known(streams: Iterable<string>): StreamStateMap | undefined;
  /** The end moved, and these are the states there. */
  apply(states: StreamStateMap): void;
  /** The end moved, and these are not known any more; undefined: none is. */
  forget(streams: ReadonlySet<string> | undefined): void;
}

const streamsMax = 10_000;

const fields = { _id: 0, version: 1, position: 1, truncateBefore: 1, tombstone: 1, retention: 1 };
type Last = Pick<
  EventDocument,
  'version' | 'position' | 'truncateBefore' | 'tombstone' | 'retention'
>;

export function createStreamStates(
  events: Collection<EventDocument>,
  types: MongodbTypes,
  endOfLog: () => LogPoint,
): StreamStates {
  /** As of the end of the log; the least recently used come first. */
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
        aggregateId: stream,
        position: { $lte: position },
        ...(isMetadata ? { eventType: metadataType, retention: { $exists: true } } : {}),
      })
      .sort({ version: -1 })
      .limit(1)
      .project<Last>(fields)
      .toArray();
    return last;
  }

  async function read(stream: string, at: LogPoint): Promise<MongodbStreamState | undefined> {
    // Most stores never use metadata: then there is nothing to look for.
    const hasMetadata = (await types.all()).has(metadataType);
    const [last, metadata] = await Promise.all([
      lastOf(stream, at, false),
      hasMetadata ? lastOf(metadataStream(stream), at, true) : undefined,
    ]);
    return stateFrom(last, metadata);
  }

  return {
    get size() {
      return cache.size;
    },
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
    forget(streams) {
      if (streams === undefined) cache.clear();
      else for (const stream of streams) cache.delete(stream);
    },
  };
}

/** The last event tells revision and end, the latest metadata retention; the later of them wins. */
export function stateFrom(
  last: Last | undefined,
  metadata: Last | undefined,
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
