// The live feed: one reader of the store serves all connections of the process. The feed stores nothing; missed messages are
// read from the store.

import { hasCode } from 'millrace/foundation';
import { createTopics, type WebContext } from 'millrace/platform';
import type { DocumentQueries, Projection } from 'millrace/projections';
import { startPosition, type Position, type RecordedEvent } from 'millrace/store';
import { participantLeft } from '../chat-events.ts';
import { chatProjection } from '../chat-read-models.ts';
import type { ChatDocument } from '../documents.ts';
import { memberRemoved } from '../workspace-events.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { liveMessageOf, liveTypes, topics } from './live-message.ts';

type LiveItem =
  | {
      readonly kind: 'message';
      readonly position: Position;
      /** JSON, serialized once for all receivers. */
      readonly text: string;
      /** User ids of the receivers. Undefined: all subscribers of the topic. */
      readonly audience?: ReadonlySet<string> | undefined;
    }
  /** Not stored, and not sent to its author. */
  | { readonly kind: 'hint'; readonly from: string; readonly text: string }
  /** The access of the user may have changed. */
  | { readonly kind: 'recheck' };

export interface LiveFeed extends AsyncDisposable {
  /** Starts the feed once; resolves when it follows the store. */
  start(): Promise<void>;
  /** All events up to here have been published. */
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

  const publish = async (event: RecordedEvent): Promise<void> => {
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
      rooms.publish(topics.user(event.tenant, userId), { kind: 'recheck' });
    }
  };

  /** A failing event is logged and skipped: it must not stop the feed. */
  const publishOrSkip = async (event: RecordedEvent): Promise<void> => {
    try {
      await publish(event);
    } catch (error) {
      if (hasCode(error, 'STORE_UNAVAILABLE')) throw error;
      const { type: eventType, stream, tenant } = event;
      observer.log?.error({ eventType, stream, tenant, err: error }, 'live event failed');
    }
    position = event.position;
  };

  /** Undefined: everyone who follows the workspace. An unknown chat has no audience. */
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
        const filter = { types: [...types], streamPrefixes: ['collab.'] };
        const items = store.subscribe({ after: position, filter, signal });
        for await (const item of items) {
          if (item.kind === 'events') for (const event of item.events) await publishOrSkip(event);
          ({ position } = item);
        }
      } catch (error) {
        observer.log?.error({ err: error }, 'live feed failed, restarting');
        await clock.sleep(restartMs, signal).catch(() => undefined);
      }
    }
  };

  const begin = async (): Promise<void> => {
    position = await store.head();
    // Documents read from now on contain at least the events before the start of the feed.
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

/** Documents of a read model plus the newer events that the feed has seen: a lagging read model must not grant access. */
export interface LiveDocuments<Document extends object> {
  get(tenant: string, id: string): Promise<Document | undefined>;
  /** Adds an event; called in order. */
  note(event: RecordedEvent): void;
}

interface Versioned<Document> {
  readonly document: Document | null;
  readonly revision: number;
}

const liveDocumentLimits = {
  cachedMax: 10_000,
  /** Recent events of all documents; more than a read model ever lags. */
  recentMax: 10_000,
} as const;

export function createLiveDocuments<Document extends object>(
  projection: Projection<Document>,
  documents: Pick<DocumentQueries<Document>, 'get'>,
  {
    cachedMax,
    recentMax,
  }: { readonly cachedMax: number; readonly recentMax: number } = liveDocumentLimits,
): LiveDocuments<Document> {
  const cached = new Map<string, Versioned<Document>>();
  /** The latest events of the feed, oldest first. */
  let recent: RecordedEvent[] = [];
  const types = new Set(projection.filter.types);
  const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`;
  const apply = (before: Versioned<Document>, event: RecordedEvent): Versioned<Document> =>
    event.revision <= before.revision
      ? before
      : { document: projection.apply(before.document, event), revision: event.revision };

  return {
    note(event) {
      if (!types.has(event.type)) return;
      const key = keyOf(event.tenant, projection.idOf(event));
      const before = cached.get(key);
      if (before !== undefined) cached.set(key, apply(before, event));
      recent.push(event);
      // Half at a time: removing one event each time would copy the list for every event.
      if (recent.length > recentMax) recent = recent.slice(recentMax / 2);
    },
    async get(tenant, id) {
      const key = keyOf(tenant, id);
      const known = cached.get(key);
      if (known !== undefined) return known.document ?? undefined;
      const found = await documents.get(tenant, id);
      // A concurrent call has cached it and applied newer events.
      const concurrent = cached.get(key);
      if (concurrent !== undefined) return concurrent.document ?? undefined;
      const base: Versioned<Document> = found ?? { document: null, revision: -1 };
      const current = recent
        .filter((event) => keyOf(event.tenant, projection.idOf(event)) === key)
        .reduce(apply, base);
      if (current.document === null) return undefined;
      cached.set(key, current);
      const [oldest] = cached.keys();
      if (cached.size > cachedMax && oldest !== undefined) cached.delete(oldest);
      return current.document;
    },
  };
}
