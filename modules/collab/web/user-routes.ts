// Routes of the caller: profile, preferences and notifications.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';
import { userSubject, userProjection, user, type UserState } from '../user.ts';
import { collabLimits } from '../fields.ts';
import { changePreferences, changeProfile } from '../user-events.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { type MakeEndpoint, flowHeader, idText } from './endpoints.ts';
import {
  meSchema,
  pageAnswer,
  pageLimits,
  pageQuery,
  pageSchema,
  notificationSchema,
} from './collab-schemas.ts';
import { deleteNotification, readNotification } from '../notifications/notification-events.ts';
import { notificationProjection, notificationsOf } from '../notifications/notification.ts';

const tag = 'collab: users';
const nullable = (charsMax: number) =>
  Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: charsMax }), Type.Null()]));

export function userRoutes(
  endpoint: MakeEndpoint,
  { load, documents }: { readonly load: WebContext['load']; readonly documents: CollabDocuments },
): readonly Route[] {
  return [
    endpoint('getMe', {
      summary: 'Oneself',
      tag,
      answers: { 200: { description: 'The user', schema: meSchema } },
      async handle(_request, { me: { tenant, userId } }) {
        const { state } = await load(user, { tenant, id: userId });
        return { body: shown(userId, state) };
      },
    }),
    endpoint('changeMe', {
      summary: 'Changes how one is shown, and what one is mailed; what is left out stays',
      tag,
      body: Type.Object(
        {
          displayName: nullable(collabLimits.nameCharsMax),
          email: nullable(254),
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
      async handle({ body }, { me: { tenant, userId }, send }) {
        const address = { tenant, id: userId };
        const { preferences, ...profile } = body;
        if (Object.keys(profile).length > 0) {
          const { state } = await load(user, address);
          const email = profile.email === undefined ? state.email : profile.email;
          const displayName =
            profile.displayName === undefined ? state.displayName : profile.displayName;
          const { position } = await send({
            id: userId,
            command: changeProfile({
              email: email ?? undefined,
              displayName: displayName ?? undefined,
            }),
            // Names and addresses are sealed with the user's own key.
            headers: { [subjectHeader]: userSubject(tenant, userId) },
          });
          await documents.settled(userProjection, position);
        }
        if (preferences !== undefined) {
          const command = changePreferences(preferences);
          const { position } = await send({ id: userId, command });
          await documents.settled(userProjection, position);
        }
        return { body: shown(userId, (await load(user, address)).state) };
      },
    }),
  ];
}

function shown(userId: string, state: UserState): object {
  const { username, displayName = null, email = null, emailPreference: preference } = state;
  return { userId, username, displayName, email, preferences: { email: preference } };
}

const notificationTag = 'collab: notifications';
const params = Type.Object({ id: idText });

export function notificationRoutes(
  endpoint: MakeEndpoint,
  { documents }: { readonly documents: CollabDocuments },
): readonly Route[] {
  return [
    endpoint('listNotifications', {
      summary: 'What one was told, newest first, and how much of it is unread',
      tag: notificationTag,
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
        return { body: { ...pageAnswer(page).body, unreadCount: page.unreadCount } };
      },
    }),
    endpoint('readNotification', {
      summary: 'Marks a notification as read',
      tag: notificationTag,
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
      tag: notificationTag,
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
