// Routes of the caller: profile, preferences and notifications.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';
import { meSchema, notificationSchema } from '../documents.ts';
import { collabLimits } from '../fields.ts';
import { deleteNotification, readNotification } from '../notifications/notification-events.ts';
import { notificationProjection, notificationsOf } from '../notifications/notification.ts';
import { pageResponse, pageLimits, pageQuery, pageSchema } from '../pages.ts';
import { changePreferences, changeProfile } from '../user-events.ts';
import { user, userProjection, userSubject, type UserState } from '../user.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { bodyOf, type EndpointMaker } from './endpoints.ts';

const nullableText = (charsMax: number) =>
  Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: charsMax }), Type.Null()]));

export function userRoutes(
  endpointsOf: EndpointMaker,
  { load, documents }: { readonly load: WebContext['load']; readonly documents: CollabDocuments },
): readonly Route[] {
  const endpoint = endpointsOf('collab: users');
  const notifications = endpointsOf('collab: notifications');
  return [
    endpoint('getMe', {
      summary: 'Get the profile of the caller',
      responses: { 200: { description: 'The user', schema: meSchema } },
      async handle(_request, { me: { tenant, userId } }) {
        const { state } = await load(user, { tenant, id: userId });
        return { body: toMe(userId, state) };
      },
    }),
    endpoint('changeMe', {
      summary: 'Change the profile of the caller; omitted fields stay, null removes a field',
      body: bodyOf({
        displayName: nullableText(collabLimits.nameCharsMax),
        email: nullableText(254),
        preferences: Type.Optional(bodyOf({ email: Type.Enum(['all', 'mentions', 'none']) })),
      }),
      responses: { 200: { description: 'The user', schema: meSchema } },
      async handle({ body: { preferences, ...changes } }, { me: { tenant, userId: id }, send }) {
        if (Object.keys(changes).length > 0) {
          const { email, displayName } = {
            ...(await load(user, { tenant, id })).state,
            ...changes,
          };
          await send({
            id,
            command: changeProfile({
              email: email ?? undefined,
              displayName: displayName ?? undefined,
            }),
            // Encrypts name and address with the key of the user.
            headers: { [subjectHeader]: userSubject(tenant, id) },
            visibleIn: userProjection,
          });
        }
        if (preferences !== undefined) {
          await send({ id, command: changePreferences(preferences), visibleIn: userProjection });
        }
        return { body: toMe(id, (await load(user, { tenant, id })).state) };
      },
    }),
    notifications('listNotifications', {
      summary: 'List the notifications of the caller, with the number of unread ones',
      query: Type.Object({ ...pageQuery, unread: Type.Optional(Type.Boolean()) }),
      responses: {
        200: {
          description: 'Newest first',
          schema: Type.Object({
            ...pageSchema(notificationSchema).properties,
            unreadCount: Type.Integer(),
          }),
        },
      },
      async handle({ query, memory }, { me: { tenant, userId } }) {
        const { limit = pageLimits.default, cursor, unread: unreadOnly } = query;
        let unreadCount = 0;
        const page = await memory.page({ limit, cursor }, async (part) => {
          const request = { ...part, tenant, userId, unreadOnly };
          const found = await notificationsOf(documents.notifications, request);
          ({ unreadCount } = found);
          return found;
        });
        return { body: { ...pageResponse(page).body, unreadCount } };
      },
    }),
    notifications('readNotification', {
      summary: 'Mark a notification as read',
      responses: { 200: { description: 'The notification', schema: notificationSchema } },
      async handle({ params: { id } }, { me, send }) {
        const command = readNotification({ by: me.userId });
        await send({ id, command, visibleIn: notificationProjection });
        return { body: await documents.fresh(notificationProjection, me.tenant, id) };
      },
    }),
    notifications('deleteNotification', {
      summary: 'Delete a notification',
      responses: { 204: { description: 'Deleted' } },
      async handle({ params: { id } }, { me, send }) {
        const command = deleteNotification({ by: me.userId });
        await send({ id, command, visibleIn: notificationProjection });
        return { status: 204 };
      },
    }),
  ];
}

function toMe(userId: string, state: UserState): object {
  const { username, displayName = null, email = null, emailPreference } = state;
  return { userId, username, displayName, email, preferences: { email: emailPreference } };
}
