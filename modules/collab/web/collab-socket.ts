// Live chats, boards and notifications over the WebSocket of the platform.

import { Type } from 'millrace/contracts';
import { MillraceError } from 'millrace/foundation';
import {
  defineSocket,
  type ModuleSocket,
  type SocketClient,
  type SocketSession,
  type WebContext,
} from 'millrace/platform';
import { parsePosition } from 'millrace/store';
import { messageSchema, notificationSchema } from '../documents.ts';
import { createReach } from './access.ts';
import { collabError, invalid } from './collab-errors.ts';
import { identify, idText } from './endpoints.ts';
import type { LiveFeed } from './live-feed.ts';
import { topics, type LiveMessage } from './live-message.ts';
import {
  createLiveSubscription,
  missedInChat,
  missedInWorkspace,
  type LiveSubscription,
} from './live-subscription.ts';

const socketLimits = { subscriptionsMax: 200, typingEveryMs: 1_000 } as const;

const text = Type.String();
const position = Type.String({ description: 'For `since`.' });
const since = Type.Optional(
  Type.String({ maxLength: 40, description: 'Send the messages after this position first.' }),
);
const ofChat = { chatId: idText };
const ofWorkspace = { workspaceId: idText };
const changed = { messageId: text, timestamp: text };
const participant = Type.Object({ ...ofChat, userId: text, role: text, position });

const messages = {
  'subscribe.chat': Type.Object({ ...ofChat, since }),
  'subscribe.workspace': Type.Object({ ...ofWorkspace, since }),
  'unsubscribe.chat': Type.Object(ofChat),
  'unsubscribe.workspace': Type.Object(ofWorkspace),
  'chat.typing': Type.Object(ofChat),
  ping: Type.Object({}),
} as const;

const sends = {
  connected: Type.Object({ userId: text, position }),
  'subscribed.chat': Type.Object({ ...ofChat, position }),
  'subscribed.workspace': Type.Object({ ...ofWorkspace, position }),
  'unsubscribed.chat': Type.Object({ ...ofChat, position, reason: Type.Optional(text) }),
  'unsubscribed.workspace': Type.Object({ ...ofWorkspace, position, reason: Type.Optional(text) }),
  'chat.message.posted': Type.Object({ ...ofChat, message: messageSchema, position }),
  'chat.message.edited': Type.Object({
    ...ofChat,
    ...changed,
    content: text,
    editedBy: text,
    position,
  }),
  'chat.message.deleted': Type.Object({ ...ofChat, ...changed, deletedBy: text, position }),
  'chat.participant.joined': participant,
  'chat.participant.left': participant,
  'chat.typing': Type.Object({ ...ofChat, userId: text, username: text, position }),
  'task.updated': Type.Object({
    ...ofChat,
    ...ofWorkspace,
    taskId: text,
    changes: Type.Record(Type.String(), Type.Object({ old: Type.Unknown(), new: Type.Unknown() })),
    changedBy: text,
    timestamp: text,
    position,
  }),
  'notification.new': Type.Object({ notification: notificationSchema, position }),
  error: Type.Object({ code: text, message: text }),
  pong: Type.Object({ position }),
} as const;

type Session = SocketSession<typeof messages>;

export function collabSocket(
  { store, tenants, clock }: Pick<WebContext, 'clock' | 'store' | 'tenants'>,
  feed: LiveFeed,
): ModuleSocket {
  const reach = createReach({
    chat: (tenant, id) => feed.chats.get(tenant, id),
    workspace: (tenant, id) => feed.workspaces.get(tenant, id),
  });
  const toError = (problem: Parameters<typeof collabError>[0]): object => {
    const { code, message } = collabError(problem);
    return { type: 'error', code, message };
  };

  return defineSocket({ messages, sends, error: toError, connect });

  function connect(client: SocketClient): Session {
    let user: ReturnType<typeof identify>;
    try {
      user = identify(client.principal);
    } catch (error) {
      return rejectAll(error);
    }
    return openSession(client, user);
  }

  /** For credentials without a user: only the platform's own messages work. */
  function rejectAll(reason: unknown): Session {
    const rejectMessage = (): never => {
      throw reason;
    };
    const on = Object.fromEntries(Object.keys(messages).map((type) => [type, rejectMessage]));
    return { on: on as unknown as Session['on'] };
  }

  function openSession(
    client: SocketClient,
    { tenant, userId }: ReturnType<typeof identify>,
  ): Session {
    const me = { tenant, userId };
    const subscriptions = new Map<string, LiveSubscription>();
    const typedAtMs = new Map<string, number>();

    const seesTask = async ({ ofChat: chatId = '' }: LiveMessage): Promise<boolean> => {
      const chat = await feed.chats.get(tenant, chatId);
      return (
        chat?.isPublic === true ||
        chat?.participants.some((each) => each.userId === userId) === true
      );
    };

    async function* missedTasks(workspaceId: string, after: ReturnType<typeof parsePosition>) {
      const missed = missedInWorkspace(store, { tenant, id: workspaceId, since: after });
      for await (const message of missed) if (await seesTask(message)) yield message;
    }

    /** A repeated subscription replaces the first one, so clients can subscribe again after a reconnect. */
    async function subscribe(
      kind: 'chat' | 'workspace',
      id: string,
      given: string | undefined,
    ): Promise<void> {
      await feed.start();
      const topic = topics[kind](tenant, id);
      const after = given === undefined ? undefined : parsePosition(given);
      if (!subscriptions.has(topic) && subscriptions.size >= socketLimits.subscriptionsMax) {
        throw new MillraceError(
          'RATE_LIMITED',
          `At most ${socketLimits.subscriptionsMax} subscriptions per connection.`,
          {
            details: { retryAfterSeconds: 1 },
          },
        );
      }
      // The connection may have closed while the feed started.
      if (client.signal.aborted) return;
      subscriptions.get(topic)?.end();
      const about = { [`${kind}Id`]: id };
      const subscription = createLiveSubscription({
        topic,
        userId,
        client,
        feed,
        since: after,
        check: async () => {
          if (kind === 'chat') await reach.chat(me, id, 'chat.see');
          else await reach.workspace(me, id, 'board.see');
        },
        welcome: (at) => ({ type: `subscribed.${kind}`, ...about, position: at }),
        missed: (from) =>
          kind === 'chat'
            ? missedInChat(store, { tenant, id, since: from }, tenants)
            : missedTasks(id, from),
        onLost(error) {
          subscriptions.delete(topic);
          const reason = error instanceof Error ? error.message : 'The subscription ended.';
          client.send({ type: `unsubscribed.${kind}`, ...about, position: feed.position, reason });
        },
      });
      subscriptions.set(topic, subscription);
      try {
        await subscription.begin();
      } catch (error) {
        if (subscriptions.get(topic) === subscription) subscriptions.delete(topic);
        throw error;
      }
    }

    function unsubscribe(kind: 'chat' | 'workspace', id: string): void {
      const topic = topics[kind](tenant, id);
      const found = subscriptions.get(topic);
      if (found === undefined) throw invalid(`${kind}Id`, `Not subscribed to ${kind} ${id}.`);
      found.end();
      subscriptions.delete(topic);
      const about = { [`${kind}Id`]: id };
      client.send({ type: `unsubscribed.${kind}`, ...about, position: feed.position });
    }

    const leave = feed.join(topics.user(tenant, userId), (item) => {
      if (item.kind === 'message') client.send(item.text);
      else for (const subscription of subscriptions.values()) subscription.recheck();
    });
    feed.start().then(
      () => client.send({ type: 'connected', userId, position: feed.position }),
      () =>
        client.send({
          type: 'error',
          code: 'INTERNAL_ERROR',
          message: 'The live feed failed. Connect again.',
        }),
    );

    return {
      on: {
        'subscribe.chat': ({ chatId, since: given }) => subscribe('chat', chatId, given),
        'subscribe.workspace': ({ workspaceId, since: given }) =>
          subscribe('workspace', workspaceId, given),
        'unsubscribe.chat': ({ chatId }) => unsubscribe('chat', chatId),
        'unsubscribe.workspace': ({ workspaceId }) => unsubscribe('workspace', workspaceId),
        async 'chat.typing'({ chatId }) {
          await feed.start();
          const { workspace } = await reach.chat(me, chatId, 'chat.type');
          const nowMs = clock.now();
          // At most one typing message per second.
          if (nowMs - (typedAtMs.get(chatId) ?? -Infinity) < socketLimits.typingEveryMs) return;
          if (typedAtMs.size >= socketLimits.subscriptionsMax) typedAtMs.clear();
          typedAtMs.set(chatId, nowMs);
          const member = workspace.members.find((each) => each.userId === userId);
          const hint = {
            type: 'chat.typing',
            chatId,
            userId,
            username: member?.username,
            position: feed.position,
          };
          feed.publish(topics.chat(tenant, chatId), {
            kind: 'hint',
            from: userId,
            text: JSON.stringify(hint),
          });
        },
        async ping() {
          await feed.start();
          client.send({ type: 'pong', position: feed.position });
        },
      },
      [Symbol.dispose]() {
        leave();
        for (const subscription of subscriptions.values()) subscription.end();
        subscriptions.clear();
      },
    };
  }
}
