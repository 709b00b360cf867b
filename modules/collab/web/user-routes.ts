// Routes of the caller: profile, preferences and notifications.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';
import { collabLimits } from '../fields.ts';
import { deleteNotification, readNotification } from '../notifications/notification-events.ts';
import { notificationProjection, notificationsOf } from '../notifications/notification.ts';
import { changePreferences, changeProfile } from '../user-events.ts';
import { user, userProjection, userSubject, type UserState } from '../user.ts';
import type { CollabDocuments } from './collab-documents.ts';
import {
  meSchema,
  notificationSchema,
  pageAnswer,
  pageLimits,
  pageQuery,
  pageSchema,
} from './collab-schemas.ts';
import { idText, type MakeEndpoint } from './endpoints.ts';

const params = Type.Object({ id: idText });
const nullableText = (charsMax: number) =>
  Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: charsMax }), Type.Null()]));

export function userRoutes(
  endpoint: MakeEndpoint,
  { load, documents }: { readonly load: WebContext['load']; readonly documents: CollabDocuments },
): readonly Route[] {
  return [
    endpoint('getMe', {
      summary: 'Get the profile of the caller',
      tag: 'collab: users',
      answers: { 200: { description: 'The user', schema: meSchema } },
      async handle(_request, { me: { tenant, userId } }) {
        const { state } = await load(user, { tenant, id: userId });
        return { body: toMe(userId, state) };
      },
    }),
    endpoint('changeMe', {
      summary: 'Change the profile of the caller; omitted fields stay, null removes a field',
      tag: 'collab: users',
      body: Type.Object(
        {
          displayName: nullableText(collabLimits.nameCharsMax),
          email: nullableText(254),
          preferences: Type.Optional(
            Type.Object(
              { email: Type.Enum(['all', 'mentions', 'none']) },
              { additionalProperties: false },
            ),
          ),
        },
        { additionalProperties: false },
      ),
      answers: { 200: { description: 'The user', schema: meSchema } },
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
    endpoint('listNotifications', {
      summary: 'List the notifications of the caller, with the number of unread ones',
      tag: 'collab: notifications',
      query: Type.Object({ ...pageQuery, unread: Type.Optional(Type.Boolean()) }),
      answers: {
        200: {
          description: 'Newest first',
          schema: Type.Object({
            ...pageSchema(notificationSchema).properties,
            unreadCount: Type.Integer(),
          }),
        },
      },
      async handle({ query }, { me: { tenant, userId } }) {
        const { limit = pageLimits.default, cursor, unread: unreadOnly } = query;
        const request = { tenant, userId, limit, cursor, unreadOnly };
        const page = await notificationsOf(documents.notifications, request);
        return { body: { ...pageAnswer(page).body, unreadCount: page.unreadCount } };
      },
    }),
    endpoint('readNotification', {
      summary: 'Mark a notification as read',
      tag: 'collab: notifications',
      params,
      answers: { 200: { description: 'The notification', schema: notificationSchema } },
      async handle({ params: { id } }, { me, send }) {
        const command = readNotification({ by: me.userId });
        await send({ id, command, visibleIn: notificationProjection });
        return { body: await documents.fresh(notificationProjection, me.tenant, id) };
      },
    }),
    endpoint('deleteNotification', {
      summary: 'Delete a notification',
      tag: 'collab: notifications',
      params,
      answers: { 204: { description: 'Deleted' } },
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
