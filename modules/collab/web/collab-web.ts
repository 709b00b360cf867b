// The HTTP routes and the WebSocket messages of the module.

import type { ModuleWeb, WebContext } from 'millrace/platform';
import { createResourceReach } from './access.ts';
import { chatRoutes } from './chat-routes.ts';
import { collabDocuments } from './collab-documents.ts';
import { collabSocket } from './collab-socket.ts';
import { createEndpointMaker } from './endpoints.ts';
import { createLiveFeed } from './live-feed.ts';
import { createMessageLimiter } from './message-limiter.ts';
import { taskRoutes } from './task-routes.ts';
import { userRoutes } from './user-routes.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export interface CollabWebOptions {
  /** Messages per user and process; `Infinity`: unlimited. Default: 60. */
  readonly messagesPerMinute?: number | undefined;
}

export function collabWeb(
  platform: WebContext,
  { messagesPerMinute }: CollabWebOptions = {},
): ModuleWeb {
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
