// What happens, for all screens of this process: one reader of the store, from its end on, however many
// connections there are. It keeps nothing; what somebody missed is read from the store (missed-messages).

import { hasCode } from 'millrace/foundation';
import { createTopics, type WebContext } from 'millrace/platform';
import { startPosition, type Position, type RecordedEvent } from 'millrace/store';
import { participantLeft } from '../chat-events.ts';
import { chatProjection, type ChatDocument } from '../chat-read-models.ts';
import { memberRemoved } from '../workspace-events.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { liveMessageOf, liveTypes, topics } from './live-message.ts';
import type { DocumentQueries, Projection } from 'millrace/projections';

type LiveItem =
  | {
      readonly kind: 'message';
      readonly position: Position;
      /** JSON, made once for all who get it. */
      readonly text: string;
      /** Only for these. Undefined: for all in the topic. */
      readonly audience?: ReadonlySet<string> | undefined;
    }
  /** Of this moment, and not for whom it is from. */
  | { readonly kind: 'hint'; readonly from: string; readonly text: string }
  /** To a user: what this one may see has changed. */
  | { readonly kind: 'doubt' };

export interface LiveFeed extends AsyncDisposable {
  /** Once, whoever asks first; resolves when it follows. */
  start(): Promise<void>;
  /** Everything up to here has been given out. */
  readonly position: Position;
  readonly chats: LiveDocuments<ChatDocument>;
  readonly workspaces: LiveDocuments<WorkspaceDocument>;
  join(topic: string, listen: (item: LiveItem) => void): () => void;
  publish(topic: string, item: LiveItem): void;
}

const restartMs = 1_000;

export function createLiveFeed(
  { store, clock, observer }: Pick<WebContext, 'clock' | 'observer' | 'store'>,
  documents: Pick<CollabDocuments, 'chats' | 'settled' | 'workspaces'>,
): LiveFeed {
  const rooms = createTopics<LiveItem>();
  const stopping = new AbortController();
  const chats = createLiveDocuments(chatProjection, documents.chats);
  const workspaces = createLiveDocuments(workspaceProjection, documents.workspaces);
  const types = new Set([
    ...liveTypes,
    ...(chatProjection.filter.types ?? []),
    ...(workspaceProjection.filter.types ?? []),
  ]);
  const losses = new Set<string>([participantLeft.type, memberRemoved.type]);
  let position = startPosition;
  let started: Promise<void> | undefined;
  let running: Promise<void> = Promise.resolve();

  const tell = async (event: RecordedEvent): Promise<void> => {
    chats.note(event);
    workspaces.note(event);
    const live = liveMessageOf(event);
    if (live !== undefined) {
      const text = JSON.stringify(live.message);
      const audience =
        live.ofChat === undefined ? undefined : await audienceOf(event.tenant, live.ofChat);
      rooms.publish(live.topic, { kind: 'message', position: event.position, text, audience });
    }
    if (losses.has(event.type)) {
      const { userId } = event.payload as { readonly userId: string };
      rooms.publish(topics.user(event.tenant, userId), { kind: 'doubt' });
    }
  };

  /** One that nobody can be told of must not keep all others back. */
  const tellOne = async (event: RecordedEvent): Promise<void> => {
    try {
      await tell(event);
    } catch (error) {
      if (hasCode(error, 'STORE_UNAVAILABLE')) throw error;
      const { type: eventType, stream, tenant } = event;
      observer.log?.error({ eventType, stream, tenant, err: error }, 'live event failed');
    }
    position = event.position;
  };

  /** A chat that is not known is nobody's. */
  const audienceOf = async (
    tenant: string,
    chatId: string,
  ): Promise<ReadonlySet<string> | undefined> => {
    const chat = await chats.get(tenant, chatId);
    if (chat?.isPublic === true) return undefined;
    return new Set(chat?.participants.map(({ userId }) => userId));
  };

  const follow = async (): Promise<void> => {
    const { signal } = stopping;
    while (!signal.aborted) {
      try {
        const items = store.subscribe({ after: position, filter: { types: [...types] }, signal });
        for await (const item of items) {
          if (item.kind === 'events') for (const event of item.events) await tellOne(event);
          ({ position } = item);
        }
      } catch (error) {
        observer.log?.error({ err: error }, 'live feed failed, and goes on');
        await clock.sleep(restartMs, signal).catch(() => undefined);
      }
    }
  };

  const begin = async (): Promise<void> => {
    position = await store.head();
    // Documents that are read from now on hold at least what was there before the feed.
    await Promise.all([
      documents.settled(chatProjection, position),
      documents.settled(workspaceProjection, position),
    ]);
    if (!stopping.signal.aborted) running = follow();
  };

  return {
    start() {
      started ??= begin().catch((error: unknown) => {
        started = undefined;
        throw error;
      });
      return started;
    },
    get position() {
      return position;
    },
    chats,
    workspaces,
    join: (topic, listen) => rooms.join(topic, listen),
    publish: (topic, item) => rooms.publish(topic, item),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

// Documents as the live feed has seen them: what the read model has, and the events behind that which passed
// by here already. So nobody is let in by a read model that is a moment late.
export interface LiveDocuments<Document extends object> {
  get(tenant: string, id: string): Promise<Document | undefined>;
  /** Every event of the projection, in their order. */
  note(event: RecordedEvent): void;
}

interface Kept<Document> {
  readonly document: Document | null;
  readonly revision: number;
}

const liveDocumentLimits = {
  keptMax: 10_000,
  /** Of all documents, also those that are kept: one may be read again. Read models are never so far behind. */
  recentMax: 10_000,
} as const;

export function createLiveDocuments<Document extends object>(
  projection: Projection<Document>,
  documents: Pick<DocumentQueries<Document>, 'get'>,
  {
    keptMax,
    recentMax,
  }: { readonly keptMax: number; readonly recentMax: number } = liveDocumentLimits,
): LiveDocuments<Document> {
  const kept = new Map<string, Kept<Document>>();
  /** Oldest first. */
  let recent: RecordedEvent[] = [];
  const types = new Set(projection.filter.types);
  const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`;
  const apply = (before: Kept<Document>, event: RecordedEvent): Kept<Document> =>
    event.revision <= before.revision
      ? before
      : { document: projection.apply(before.document, event), revision: event.revision };

  return {
    note(event) {
      if (!types.has(event.type)) return;
      const key = keyOf(event.tenant, projection.idOf(event));
      const before = kept.get(key);
      if (before !== undefined) kept.set(key, apply(before, event));
      recent.push(event);
      // Cut by half: each time would copy the list for every event.
      if (recent.length > recentMax) recent = recent.slice(recentMax / 2);
    },
    async get(tenant, id) {
      const key = keyOf(tenant, id);
      const known = kept.get(key);
      if (known !== undefined) return known.document ?? undefined;
      const found = await documents.get(tenant, id);
      // Somebody else asked for it meanwhile: that one goes on with the events.
      const other = kept.get(key);
      if (other !== undefined) return other.document ?? undefined;
      const base: Kept<Document> = found ?? { document: null, revision: -1 };
      const current = recent
        .filter((event) => keyOf(event.tenant, projection.idOf(event)) === key)
        .reduce(apply, base);
      if (current.document === null) return undefined;
      kept.set(key, current);
      const [oldest] = kept.keys();
      if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest);
      return current.document;
    },
  };
}
