// What a user was told.

import { Type } from 'millrace/contracts';
import type { Route } from 'millrace/platform';
import { deleteNotification, readNotification } from '../notification-events.ts';
import { notificationProjection } from '../notification-projection.ts';
import { notificationsOf } from '../notification-queries.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { flowHeader, idText, type MakeEndpoint } from './collab-endpoint.ts';
import { pageAnswer, pageLimits, pageQuery, pageSchema } from './collab-page.ts';
import { notificationSchema } from './collab-schemas.ts';

const tag = 'collab: notifications';
const params = Type.Object({ id: idText });

export function notificationRoutes(
  endpoint: MakeEndpoint,
  { documents }: { readonly documents: CollabDocuments },
): readonly Route[] {
  return [
    endpoint('listNotifications', {
      summary: 'What one was told, newest first, and how much of it is unread',
      tag,
      query: Type.Object({ ...pageQuery, unread: Type.Optional(Type.Boolean()) }),
      answers: {
        200: {
          description: 'A page',
          schema: Type.Object({
            ...pageSchema(notificationSchema).properties,
            unreadCount: Type.Integer(),
          }),
        },
      },
      async handle({ query }, { me: { tenant, userId } }) {
        const { limit = pageLimits.default, cursor, unread: unreadOnly = false } = query;
        const asked = { tenant, userId, limit, cursor, unreadOnly };
        const page = await notificationsOf(documents.notifications, asked);
        return pageAnswer(
          page.items.map(({ document }) => document),
          page.cursor,
          { unreadCount: page.unreadCount },
        );
      },
    }),
    endpoint('readNotification', {
      summary: 'Marks a notification as read',
      tag,
      params,
      answers: { 200: { description: 'The notification', schema: notificationSchema } },
      async handle({ params: { id } }, { me, send }) {
        // Others' are refused by the notification itself, as if they were not there.
        const outcome = await send({ id, command: readNotification({ by: me.userId }) });
        await documents.settled(notificationProjection, outcome.position);
        const body = await documents.fresh(notificationProjection, me.tenant, id);
        return { headers: flowHeader(outcome), body };
      },
    }),
    endpoint('deleteNotification', {
      summary: 'Deletes a notification',
      tag,
      params,
      answers: { 204: { description: 'Done' } },
      async handle({ params: { id } }, { me, send }) {
        const outcome = await send({ id, command: deleteNotification({ by: me.userId }) });
        await documents.settled(notificationProjection, outcome.position);
        return { status: 204, headers: flowHeader(outcome) };
      },
    }),
  ];
}
