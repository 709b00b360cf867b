// The module on the web: every route and the WebSocket's messages, over what the platform gives.

import type { ModuleWeb, WebContext } from 'millrace/platform';
import { chatRoutes, messageRoutes } from './chat-routes.ts';
import { collabDocuments } from './collab-documents.ts';
import { createEndpointMaker, createWebUsers } from './endpoints.ts';
import { collabSocket } from './collab-socket.ts';
import { createLiveFeed } from './live-feed.ts';
import { createMessageLimiter } from './message-limiter.ts';
import { notificationRoutes, userRoutes } from './user-routes.ts';
import { createReach } from './access.ts';
import { taskRoutes } from './task-routes.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export interface CollabWebOptions {
  /** Of one user, to one process; `Infinity`: as many as there are. Default: 60. */
  readonly messagesPerMinute?: number | undefined;
}

export function collabWeb(
  platform: WebContext,
  { messagesPerMinute }: CollabWebOptions = {},
): ModuleWeb {
  const { clock, load } = platform;
  const documents = collabDocuments(platform);
  const endpoint = createEndpointMaker({ platform, users: createWebUsers(platform) });
  const parts = {
    documents,
    clock,
    load,
    reach: createReach(documents),
    limiter: createMessageLimiter(clock, messagesPerMinute),
  };
  const feed = createLiveFeed(platform, documents);
  return {
    routes: [
      ...userRoutes(endpoint, parts),
      ...workspaceRoutes(endpoint, parts),
      ...chatRoutes(endpoint, parts),
      ...messageRoutes(endpoint, parts),
      ...taskRoutes(endpoint, parts),
      ...notificationRoutes(endpoint, parts),
    ],
    socket: collabSocket(platform, feed),
    [Symbol.asyncDispose]: () => feed[Symbol.asyncDispose](),
  };
}
