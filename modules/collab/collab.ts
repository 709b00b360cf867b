// The module: aggregates, projections, reactors, routes and e-mail.

import type { Destination, DestinationSettings } from 'millrace/delivery';
import {
  defineModule,
  type ModuleWeb,
  type PlatformModule,
  type WebContext,
} from 'millrace/platform';
import { chatProjection, messageProjection } from './chat-read-models.ts';
import { chat } from './chat.ts';
import { notification, notificationProjection } from './notifications/notification.ts';
import {
  mailDestination,
  mailIntegration,
  notificationOutbox,
  notifier,
} from './notifications/notifier.ts';
import { botReactor, commandExecutor, conversionReactor, tagReactor } from './reactors.ts';
import { taskProjection } from './tasks/task-read-models.ts';
import { task } from './tasks/task.ts';
import { user, usernames, userProjection } from './user.ts';
import { createResourceReach } from './web/access.ts';
import { chatRoutes } from './web/chat-routes.ts';
import { collabDocuments } from './web/collab-documents.ts';
import { collabSocket } from './web/collab-socket.ts';
import { createEndpointMaker } from './web/endpoints.ts';
import { createLiveFeed } from './web/live-feed.ts';
import { createMessageLimiter } from './web/message-limiter.ts';
import { taskRoutes } from './web/task-routes.ts';
import { userRoutes } from './web/user-routes.ts';
import { workspaceRoutes } from './web/workspace-routes.ts';
import { workspace, workspaceProjection } from './workspace.ts';

export interface CollabOptions {
  /** Messages per user and process; `Infinity`: unlimited. Default: 60. */
  readonly messagesPerMinute?: number | undefined;
  /** Sends e-mail with the payload `{ to, subject, text }`. Default: no e-mail. */
  readonly email?: Destination | DestinationSettings | undefined;
}

export function collab({ email, messagesPerMinute }: CollabOptions = {}): PlatformModule {
  return defineModule({
    name: 'collab',
    aggregates: [user, usernames, workspace, chat, task, notification],
    projections: [
      userProjection,
      workspaceProjection,
      chatProjection,
      messageProjection,
      taskProjection,
      notificationProjection,
    ],
    reactors: (context) => [
      tagReactor,
      commandExecutor(context),
      conversionReactor,
      botReactor,
      notifier(context),
    ],
    web: (context) => collabWeb(context, messagesPerMinute),
    // Without a destination, e-mail would only accumulate in the outbox.
    ...(email === undefined ? {} : emailBy(email)),
  });
}

function emailBy(
  email: Destination | DestinationSettings,
): Pick<PlatformModule, 'destinations' | 'outbox'> {
  const settings = typeof email === 'function' ? { send: email } : email;
  return {
    outbox: [notificationOutbox],
    destinations: (context) => ({
      [mailIntegration]: { ...settings, send: mailDestination(settings.send, context) },
    }),
  };
}

function collabWeb(platform: WebContext, messagesPerMinute: number | undefined): ModuleWeb {
  const { clock, load } = platform;
  const documents = collabDocuments(platform);
  const endpoint = createEndpointMaker(platform, documents);
  const parts = {
    documents,
    clock,
    load,
    reach: createResourceReach(documents),
    limiter: createMessageLimiter(clock, messagesPerMinute),
  };
  const feed = createLiveFeed(platform, documents);
  return {
    routes: [
      ...userRoutes(endpoint, parts),
      ...workspaceRoutes(endpoint, parts),
      ...chatRoutes(endpoint, parts),
      ...taskRoutes(endpoint, parts),
    ],
    socket: collabSocket(platform, feed),
    [Symbol.asyncDispose]: () => feed[Symbol.asyncDispose](),
  };
}
