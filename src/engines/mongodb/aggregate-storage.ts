// Snapshots and key claims of aggregates. A snapshot is a document of `<aggregate>_snapshots` with the members of the
// state, as in the architecture document.

import type { Db } from 'mongodb';
import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { Snapshot, SnapshotStore } from '../../aggregates/snapshot-store.ts';
import { categoryOf } from '../../store/stream-category.ts';
import { aggregateIdOf } from './aggregate-id.ts';
import { isDuplicate, translated } from './connection.ts';
import { documentLimits, fitsBson } from './event-document.ts';

/** The members of the state are stored in addition to these fields. */
interface SnapshotDocument {
  /** The stream: tenants may use the same id. */
  readonly _id: string;
  readonly aggregateId: string;
  /** As in `events`: the version of the last event in the state. */
  readonly version: number;
  readonly snapshotAt: Date;
  readonly snapshotEventId: string;
  readonly codeVersion: number;
  /** The state as a JSON string, if it is no object, if BSON would change it, or if a member has the name of a field. */
  readonly stateJson?: string;
}

const fields: ReadonlySet<string> = new Set<keyof SnapshotDocument>([
  '_id',
  'aggregateId',
  'version',
  'snapshotAt',
  'snapshotEventId',
  'codeVersion',
  'stateJson',
]);

interface KeyDocument {
  /** The idempotency key. */
  readonly _id: string;
  readonly stream: string;
  readonly command: string;
}

/** A claim must survive the loss of a minority of replicas; a snapshot may be lost. */
const durable = { writeConcern: { w: 'majority', journal: true } } as const;

export interface MongodbAggregateStorage {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
}

export function mongodbAggregateStorage(db: Db): MongodbAggregateStorage {
  const snapshotsOf = (stream: string) =>
    db.collection<SnapshotDocument>(snapshotCollection(stream), { readPreference: 'primary' });
  const keys = db.collection<KeyDocument>('command_keys', {
    ...durable,
    readPreference: 'primary',
  });
  return {
    snapshots: translated<SnapshotStore>({
      async load(stream) {
        const found = await snapshotsOf(stream).findOne({ _id: stream });
        return found === null ? undefined : toSnapshot(found);
      },
      async save(stream, snapshot) {
        const { _id, ...document } = toSnapshotDocument(stream, snapshot);
        const notNewer = { _id, version: { $lte: document.version } };
        try {
          await snapshotsOf(stream).replaceOne(notNewer, document, { upsert: true });
        } catch (error) {
          // The stored snapshot is newer, so the upsert tried to insert a second one.
          if (!isDuplicate(error)) throw error;
        }
      },
    }),
    keyClaims: translated<KeyClaims>({
      async claim(key, { stream, command }) {
        try {
          await keys.insertOne({ _id: key, stream, command });
        } catch (error) {
          if (!isDuplicate(error)) throw error;
        }
        const holder = await keys.findOne({ _id: key });
        return holder === null
          ? { stream, command }
          : { stream: holder.stream, command: holder.command };
      },
    }),
  };
}

/** `chat_snapshots` for `collab.chat.v1-core-…`. */
function snapshotCollection(stream: string): string {
  const aggregate = categoryOf(stream)?.split('.')[1] ?? '';
  return /^[A-Za-z0-9]{1,60}$/.test(aggregate) ? `${aggregate}_snapshots` : 'other_snapshots';
}

export function toSnapshotDocument(
  stream: string,
  { revision, eventId, state, codeVersion, takenAt }: Snapshot,
): SnapshotDocument {
  const json = JSON.stringify(state);
  return {
    ...membersOf(json),
    _id: stream,
    aggregateId: aggregateIdOf(stream, undefined),
    version: revision + 1,
    snapshotAt: new Date(takenAt),
    snapshotEventId: eventId,
    codeVersion,
  };
}

function membersOf(json: string): object {
  if (json.length > documentLimits.bsonFromCharsMax) return { stateJson: json };
  const state = JSON.parse(json) as unknown;
  const isPlain = typeof state === 'object' && state !== null && !Array.isArray(state);
  const isClear = isPlain && Object.keys(state).every((name) => !fields.has(name));
  return isClear && fitsBson(state) ? state : { stateJson: json };
}

export function toSnapshot(document: SnapshotDocument): Snapshot {
  const { version, snapshotAt, snapshotEventId, codeVersion, stateJson } = document;
  const members = Object.entries(document).filter(([name]) => !fields.has(name));
  return {
    revision: version - 1,
    eventId: snapshotEventId,
    state: stateJson === undefined ? Object.fromEntries(members) : JSON.parse(stateJson),
    codeVersion,
    takenAt: snapshotAt.toISOString(),
  };
}
