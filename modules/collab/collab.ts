// The module: what can happen, what follows from it, what queries see, and what leaves.

import type { Destination, DestinationSettings } from 'millrace/delivery';
import { defineModule, type PlatformModule } from 'millrace/platform';
import { botReactor, conversionReactor } from './chat-reactor.ts';
import { chat } from './chat.ts';
import { chatProjection } from './chat-projection.ts';
import { commandExecutor } from './command-executor.ts';
import { messageProjection } from './message-projection.ts';
import { mailDestination, mailIntegration, notificationOutbox } from './notification-mail.ts';
import { notification } from './notification.ts';
import { notificationProjection } from './notification-projection.ts';
import { notifier } from './notifier.ts';
import { tagReactor } from './tag-reactor.ts';
import { task } from './task.ts';
import { taskProjection } from './task-projection.ts';
import { user, usernames } from './user.ts';
import { userProjection } from './user-projection.ts';
import { workspace } from './workspace.ts';
import { collabWeb, type CollabWebOptions } from './web/collab-web.ts';
import { workspaceProjection } from './workspace-projection.ts';

export interface CollabOptions extends CollabWebOptions {
  /** Sends mails, `{ to, subject, text }` by its payload. Default: nobody gets any. */
  readonly email?: Destination | DestinationSettings;
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
    // Without somebody to send them, no mails pile up.
    ...(email === undefined ? {} : mailsBy(email)),
  });
}

function mailsBy(
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
