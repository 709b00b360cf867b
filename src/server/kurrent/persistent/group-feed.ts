// The source of a group (a stream, an index stream or `$all`) as numbered messages.

import { toPosition, toSequence } from '../../../store/position.ts';
import type { FeedItem } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { KurrentContext } from '../context.ts';
import { correlationOf, type ReadEvent } from '../events/to-wire.ts';
import { indexFilter } from '../streams/index-stream.ts';
import { asLinks, eventAt, resolveLinks } from '../streams/resolve-links.ts';
import { toUuid } from '../uuid.ts';
import type { Message } from './group-core.ts';
import type { ParkedMessage } from './group-records.ts';
import type { GroupSettings } from './group-settings.ts';

type FeedStep =
  | { readonly kind: 'messages'; readonly messages: readonly Message<ReadEvent>[] }
  /** The source has no other messages for this group up to this number. */
  | { readonly kind: 'passed'; readonly at: number };

export interface GroupFeed {
  follow(after: number, signal: AbortSignal): AsyncIterable<FeedStep>;
  /** Reads a parked message again, with its link; undefined: its event was deleted. */
  find(parked: ParkedMessage, signal: AbortSignal): Promise<Message<ReadEvent> | undefined>;
}

export function createGroupFeed(
  { store, ownerOf }: Pick<KurrentContext, 'store' | 'ownerOf'>,
  source: string,
  settings: Pick<GroupSettings, 'resolveLinks' | 'readBatchSize' | 'filter'>,
): GroupFeed {
  const index = indexFilter(source);
  const all = source === '$all' ? (settings.filter ?? { system: true }) : undefined;
  const filter = all ?? index;
  const byRevision = filter === undefined;
  // Links must not reveal events of other tenants or of the system.
  const mayRead = async (stream: string): Promise<boolean> => {
    const owner = await ownerOf(source);
    if (owner !== '') return (await ownerOf(stream)) === owner;
    return source.startsWith('$') || !stream.startsWith('$');
  };

  const toReads = async (
    events: readonly RecordedEvent[],
    signal: AbortSignal,
    isLive: boolean,
  ): Promise<readonly ReadEvent[]> => {
    if (index !== undefined) {
      return asLinks(store, events, { stream: source, resolve: settings.resolveLinks, isLive });
    }
    if (!settings.resolveLinks) return events.map((event) => ({ event }));
    return Array.fromAsync(resolveLinks(store, events, { mayRead, signal }));
  };

  const toMessage = (read: ReadEvent, recorded: RecordedEvent): Message<ReadEvent> => {
    const original = read.link ?? read.event ?? recorded;
    const pinned = read.event ?? recorded;
    return {
      id: toUuid(original.eventId),
      at: byRevision ? recorded.revision : toSequence(recorded.position),
      pin: { stream: pinned.stream, correlation: correlationOf(pinned) },
      target: { stream: original.stream, revision: original.revision },
      content: read,
    };
  };

  const openFeed = (after: number, signal: AbortSignal): AsyncIterable<FeedItem> => {
    const { readBatchSize: pageSize } = settings;
    if (byRevision) return store.subscribeToStream(source, { after, pageSize, signal });
    return store.subscribe({ after: toPosition(Math.max(0, after)), filter, pageSize, signal });
  };

  return {
    async *follow(after, signal) {
      let isLive = false;
      for await (const item of openFeed(after, signal)) {
        if (item.kind === 'events') {
          const reads = await toReads(item.events, signal, isLive);
          const bytes = (item.bytes ?? 0) / item.events.length;
          const messages = reads.flatMap((read, at) => {
            const recorded = item.events[at];
            return recorded === undefined ? [] : [{ ...toMessage(read, recorded), bytes }];
          });
          yield { kind: 'messages', messages };
        } else if (!byRevision) {
          yield { kind: 'passed', at: toSequence(item.position) };
        }
        if (item.kind === 'caughtUp' || item.kind === 'fellBehind') {
          isLive = item.kind === 'caughtUp';
        }
      }
    },
    async find({ target, link }, signal) {
      const found = await eventAt(store, target, { signal });
      if (found === undefined) return undefined;
      const [read] = await toReads([found], signal, false);
      if (read?.event === undefined) return undefined;
      // Clients acknowledge by the id of the link.
      const content = { event: read.event, link };
      return { ...toMessage(read, found), id: toUuid(link.eventId), content };
    },
  };
}
