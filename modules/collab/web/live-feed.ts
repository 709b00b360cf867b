// What happens, for all screens of this process: one reader of the store, from its end on, however many
// connections there are. It keeps nothing; what somebody missed is read from the store (missed-messages).

import { hasCode } from 'millrace/foundation';
import { createTopics, type WebContext } from 'millrace/platform';
import { startPosition, type Position, type RecordedEvent } from 'millrace/store';
import { participantLeft } from '../chat-events.ts';
import { chatProjection, type ChatDocument } from '../chat-projection.ts';
import { memberRemoved } from '../workspace-events.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace-projection.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { createLiveDocuments, type LiveDocuments } from './live-documents.ts';
import { liveMessageOf, liveTypes, topics } from './live-message.ts';

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
