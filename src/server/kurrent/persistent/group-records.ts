// The durable state of groups: settings, checkpoints and parked messages, as events of system streams, so that every
// engine can store them.

import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { createIds, idFromKey } from '../../../foundation/ids.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { liveSystemStream } from '../../../store/system-stream.ts';
import type { KurrentContext } from '../context.ts';
import { fromWire } from '../events/from-wire.ts';
import { contentOf, linkType } from '../events/to-wire.ts';
import { parseLink, type LinkTarget } from '../streams/resolve-links.ts';
import type { GroupSettings } from './group-settings.ts';

export interface GroupKey {
  /** A stream's name, or `$all`. */
  readonly source: string;
  readonly group: string;
}

export interface ParkedMessage {
  readonly link: RecordedEvent;
  readonly target: LinkTarget;
}

export interface GroupRecords {
  /** Returns all groups, and fences off the server that wrote before. */
  takeOver(): Promise<readonly (GroupKey & { readonly settings: GroupSettings })[]>;
  save(key: GroupKey, settings: GroupSettings): Promise<void>;
  /** Deletes the group, its checkpoint and its parked messages. */
  remove(key: GroupKey): Promise<void>;
  checkpoint(key: GroupKey): Promise<number | undefined>;
  saveCheckpoint(key: GroupKey, at: number): Promise<void>;
  park(
    key: GroupKey,
    target: LinkTarget,
    about: { readonly reason: string; readonly at: number },
  ): Promise<void>;
  readParked(key: GroupKey, from: number, limit: number): Promise<readonly ParkedMessage[]>;
  /** Deletes parked messages up to this one. */
  unpark(key: GroupKey, upTo: number): Promise<void>;
  /** The count of parked messages whose number is `from` or higher. */
  countParked(key: GroupKey, from: number): Promise<number>;
}

export const groupConfigStream = '$persistentSubscriptionConfig';
const configType = '$PersistentConfig';
const checkpointType = '$SubscriptionCheckpoint';
/** Marks the takeover by another server, with the last checkpoint. */
const ownerType = '$SubscriptionOwner';
const streamCharsMax = 200;

export function keyText({ source, group }: GroupKey): string {
  return `${source}::${group}`;
}

function parkedStream(key: GroupKey): string {
  return ownStream(key, 'parked');
}

function ownStream(key: GroupKey, what: 'parked' | 'checkpoint'): string {
  const name = `$persistentsubscription-${keyText(key)}-${what}`;
  // Stores limit the length of names, and the name of the source may reach that limit.
  return name.length <= streamCharsMax
    ? name
    : `$persistentsubscription-${idFromKey(keyText(key))}-${what}`;
}

export interface GroupRecordsOptions {
  /** Writes check the expected revision, because other servers may write too. */
  readonly fenced: boolean;
  /** Another server has taken over. */
  readonly onLost: () => void;
}

export function createGroupRecords(
  { store, clock, observer }: Pick<KurrentContext, 'store' | 'clock' | 'observer'>,
  { fenced, onLost }: GroupRecordsOptions,
): GroupRecords {
  const ids = createIds({ clock });
  /** The expected revision of the next write, by stream. */
  const expectations = new Map<string, number | 'none'>();

  /** The names of streams that continue under another name, because they were tombstoned. */
  const live = new Map<string, string>();
  const liveName = async (stream: string): Promise<string> => {
    const name = live.get(stream) ?? (await liveSystemStream(store, stream, observer));
    live.set(stream, name);
    return name;
  };

  const systemEvent = (stream: string, type: string, payload: unknown): DomainEventEnvelope => {
    const eventId = ids.next();
    const occurredAt = new Date(clock.now()).toISOString();
    const aggregate = { bc: '', type: '', id: stream };
    return { type, eventId, occurredAt, correlationId: eventId, tenant: '', aggregate, payload };
  };
  const append = async (stream: string, type: string, payload: unknown): Promise<number> => {
    const event = systemEvent(stream, type, payload);
    if (!fenced) return (await store.append(stream, [event])).revision;
    const expected = expectations.get(stream) ?? (await nextOf(stream));
    try {
      const { revision } = await store.append(stream, [event], { expected });
      expectations.set(stream, revision);
      return revision;
    } catch (error) {
      if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
      onLost();
      throw new MillraceError('LEASE_LOST', `another server has taken over '${stream}'`, {
        cause: error,
        details: { stream },
      });
    }
  };
  const nextOf = async (stream: string): Promise<number | 'none'> => {
    const info = await store.streamInfo(stream);
    return info === undefined || info.deleted !== 'no' || info.revision < 0
      ? 'none'
      : info.revision;
  };
  const appendCheckpoint = async (key: GroupKey, type: string, payload: unknown): Promise<void> => {
    const stream = await liveName(ownStream(key, 'checkpoint'));
    const revision = await append(stream, type, payload);
    // Only the latest checkpoint is needed.
    if (revision === 0) await store.setStreamMetadata(stream, { maxCount: 2 });
  };
  const lastCheckpoint = async (key: GroupKey): Promise<string | undefined> => {
    const last = { direction: 'backwards', limit: 1 } as const;
    const stream = await liveName(ownStream(key, 'checkpoint'));
    const [latest] = await store.readStream(stream, last).toArray();
    if (latest?.type !== ownerType)
      return latest === undefined ? undefined : String(latest.payload);
    const { checkpoint } = (latest.payload ?? {}) as { readonly checkpoint?: unknown };
    return typeof checkpoint === 'string' ? checkpoint : undefined;
  };
  const boundary = async (key: GroupKey): Promise<{ first: number; last: number }> => {
    const info = await store.streamInfo(await liveName(parkedStream(key)));
    return { first: info?.metadata.truncateBefore ?? 0, last: info?.revision ?? -1 };
  };

  return {
    async takeOver() {
      const found = new Map<string, GroupKey & { readonly settings: GroupSettings }>();
      let last: number | undefined;
      live.clear();
      const configs = await liveName(groupConfigStream);
      for await (const { type, payload, revision } of store.readStream(configs)) {
        last = revision;
        if (type === ownerType) continue;
        if (!isConfig(payload)) {
          observer.log?.error({ stream: configs, revision, type }, 'group settings ignored');
          continue;
        }
        const { source, group, settings } = payload;
        const key = { source, group };
        if (settings === undefined) found.delete(keyText(key));
        else found.set(keyText(key), { ...key, settings });
      }
      expectations.clear();
      if (!fenced || last === undefined) return [...found.values()];
      expectations.set(configs, last);
      await append(configs, ownerType, {});
      await Promise.all(
        [...found.values()].map(async (key) => {
          const checkpoint = await lastCheckpoint(key);
          await appendCheckpoint(key, ownerType, checkpoint === undefined ? {} : { checkpoint });
        }),
      );
      return [...found.values()];
    },
    async save({ source, group }, settings) {
      await append(await liveName(groupConfigStream), configType, { source, group, settings });
    },
    async remove({ source, group }) {
      await append(await liveName(groupConfigStream), configType, { source, group });
      for (const what of ['parked', 'checkpoint'] as const) {
        const stream = await liveName(ownStream({ source, group }, what));
        expectations.delete(stream);
        if ((await store.streamInfo(stream)) !== undefined) await store.deleteStream(stream);
      }
    },
    async checkpoint(key) {
      const text = await lastCheckpoint(key);
      return text === undefined ? undefined : parseNumber(text);
    },
    saveCheckpoint: (key, at) => appendCheckpoint(key, checkpointType, showNumber(key, at)),
    async park(key, target, { reason, at }) {
      const stream = await liveName(parkedStream(key));
      const added = new Date(clock.now()).toISOString();
      const about = { added, reason, subscriptionEventNumber: at };
      const event = fromWire(
        {
          eventId: ids.next(),
          type: linkType,
          isJson: false,
          data: Buffer.from(`${target.revision}@${target.stream}`),
          metadata: Buffer.from(JSON.stringify(about)),
        },
        { origin: { tenant: '', aggregate: { bc: '', type: '', id: stream } }, now: added },
      );
      await store.append(stream, [event]);
    },
    async readParked(key, from, limit) {
      const stream = await liveName(parkedStream(key));
      const events = await store.readStream(stream, { from, limit }).toArray();
      return events.flatMap((event) => {
        const target = parseLink(contentOf(event).data.toString('utf8'));
        return target === undefined ? [] : [{ link: event, target }];
      });
    },
    async unpark(key, upTo) {
      const { first } = await boundary(key);
      if (upTo + 1 <= first) return;
      await store.setStreamMetadata(await liveName(parkedStream(key)), {
        truncateBefore: upTo + 1,
      });
    },
    async countParked(key, from) {
      const { first, last } = await boundary(key);
      return Math.max(0, last - Math.max(first, from) + 1);
    },
  };
}

/** Another program may have written to the stream. */
function isConfig(payload: unknown): payload is GroupKey & { readonly settings?: GroupSettings } {
  const { source, group, settings } = (payload ?? {}) as Readonly<Record<string, unknown>>;
  const { after, readBatchSize, historyBufferSize } = (settings ?? {}) as Partial<GroupSettings>;
  const hasSettings = [after, readBatchSize, historyBufferSize].every(Number.isSafeInteger);
  return (
    typeof source === 'string' &&
    typeof group === 'string' &&
    (settings === undefined || hasSettings)
  );
}

/** The text form of the protocol: a revision, or a position for `$all`. */
export function showNumber({ source }: Pick<GroupKey, 'source'>, at: number): string {
  return source === '$all' ? `C:${at}/P:${at}` : String(at);
}

export function parseNumber(text: string): number | undefined {
  const match = /^(?:C:)?(-?\d+)(?:\/P:-?\d+)?$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
