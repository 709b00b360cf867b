// Notifications that leave as mails. The outbox holds who is to be told what; the address is looked up when
// the mail is sent, so that no copy of it lies anywhere, and one that was changed or forgotten counts at once.

import type { Destination } from 'millrace/delivery';
import type { OutboxProjectorDefinition } from 'millrace/outbox';
import type { ModuleContext } from 'millrace/platform';
import { z } from 'zod';
import { notificationCreated } from './notification-events.ts';
import { user } from './user.ts';

/** Chooses the destination. */
export const mailIntegration = 'email:notification';

export const notificationOutbox: OutboxProjectorDefinition = {
  name: 'sub:collab:outbox:v1',
  filter: { types: [notificationCreated.type] },
  mapper: {
    map(event) {
      if (!notificationCreated.is(event) || !event.payload.email) return undefined;
      const { userId, title, message, workspaceId, chatId, resourceId } = event.payload;
      return {
        integrationType: mailIntegration,
        eventType: event.type,
        payload: { userId, title, message, workspaceId, chatId, resourceId },
        orderingKey: userId,
      };
    },
  },
};

const job = z.object({ userId: z.string(), title: z.string(), message: z.string() });
const mail = z.object({ to: z.string(), subject: z.string(), text: z.string() });

/** What `smtpDestination` composes its mails by. */
export function composeMail({
  payload,
}: {
  readonly payload: Readonly<Record<string, unknown>>;
}): z.infer<typeof mail> {
  return mail.parse(payload);
}

/** Gives `send` the mail as the payload: `{ to, subject, text }`. */
export function mailDestination(
  send: Destination,
  { load }: Pick<ModuleContext, 'load'>,
): Destination {
  return async (message, context) => {
    const { userId, title: subject, message: text } = job.parse(message.payload);
    const { tenantId: tenant = '' } = message;
    const { state } = await load(user, { tenant, id: userId, signal: context.signal });
    const { email: to, emailPreference } = state;
    if (to === undefined) return { kind: 'sent', skipped: 'the user has no address' };
    if (emailPreference === 'none') return { kind: 'sent', skipped: 'the user wants no mails' };
    return send({ ...message, payload: { to, subject, text } }, context);
  };
}
