// Deletes the events that retention hides, in small steps. Commits keep their numbers, so the log has no gaps.

import { convertErrors } from '../../foundation/error.ts';
import { firstVisible } from '../../store/retention.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../store/scavenge.ts';
import type { ScavengeProgress } from '../../store/store-engine.ts';
import { metadataType, streamOfMetadata, tombstoneType } from '../../store/stream-metadata.ts';
import type { CommitLog } from './commit-log.ts';
import { unavailable } from './connection.ts';
import type { EventDocument, LogPoint, MongodbCollections } from './collections.ts';
import type { StreamStates } from './stream-states.ts';

export interface ScavengeParts {
  readonly collections: MongodbCollections;
  readonly log: CommitLog;
  readonly states: StreamStates;
}

export async function scavengeMongodb(
  { collections, log, states }: ScavengeParts,
  options: ScavengeOptions,
): Promise<ScavengeProgress> {
  const { events } = collections;
  return convertErrors(async () => {
    // Sweep first: a commit that still holds its events would restore deleted events.
    await log.sweep();
    return scavengeStreams(await candidates(), options, removeSome);
  }, unavailable);

  /** Streams with metadata or a tombstone: only they hide events. */
  async function candidates(): Promise<readonly string[]> {
    const types = { $in: [metadataType, tombstoneType] };
    const found = await events.distinct('stream', { eventType: types });
    const streams = new Set(found.flatMap((stream) => streamOfMetadata(stream) ?? stream));
    return [...streams].toSorted();
  }

  async function removeSome(stream: string): Promise<number> {
    const head = await log.advance();
    const state = (await states.load([stream], head)).get(stream);
    if (state === undefined) return 0;
    // The last event of a stream stays: it holds the stream's revision and age.
    const first = state.tombstoned ? state.revision : firstVisible(state);
    const { maxAgeSeconds } = state;
    const tooOld =
      maxAgeSeconds === undefined
        ? []
        : [{ recordedAt: { $lte: new Date(options.nowMs - maxAgeSeconds * 1_000) } }];
    const hidden = await events
      .find({
        stream,
        version: { $lte: state.revision },
        $or: [{ version: { $lte: first } }, ...tooOld],
      })
      .project<Pick<EventDocument, '_id' | 'version' | 'retention'>>({ version: 1, retention: 1 })
      .limit(scavengeStepMax)
      .toArray();
    const inForce = await latestRetention(stream, head);
    const removable = hidden.filter(({ version }) => version !== inForce);
    if (removable.length === 0) return 0;
    const { deletedCount } = await events.deleteMany({
      _id: { $in: removable.map(({ _id }) => _id) },
    });
    return deletedCount;
  }

  /** Returns the version in a metadata stream that has the current retention, usually the last one. */
  async function latestRetention(stream: string, { position }: LogPoint) {
    if (streamOfMetadata(stream) === undefined) return undefined;
    const [latest] = await events
      .find({ stream, retention: { $exists: true }, position: { $lte: position } })
      .sort({ version: -1 })
      .limit(1)
      .project<Pick<EventDocument, 'version'>>({ version: 1 })
      .toArray();
    return latest?.version;
  }
}
