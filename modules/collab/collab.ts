// The module: aggregates, projections, reactors, routes and e-mail.

import type { Destination, DestinationSettings } from 'millrace/delivery';
import { defineModule, type PlatformModule } from 'millrace/platform';
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
import { collabWeb, type CollabWebOptions } from './web/collab-web.ts';
import { workspace, workspaceProjection } from './workspace.ts';

export interface CollabOptions extends CollabWebOptions {
  /** Sends e-mail with the payload `{ to, subject, text }`. Default: no e-mail. */
  readonly email?: Destination | DestinationSettings | undefined;
}

export function collab({ email, ...web }: CollabOptions = {}): PlatformModule {
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
    web: (context) => collabWeb(context, web),
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
