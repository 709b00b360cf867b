// Oneself: what one is called, and what one wants to be mailed.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import { subjectHeader } from 'millrace/store';
import { userSubject } from '../ensure-user.ts';
import { collabLimits } from '../fields.ts';
import { changePreferences, changeProfile } from '../user-events.ts';
import { userProjection } from '../user-projection.ts';
import { user, type UserState } from '../user.ts';
import type { CollabDocuments } from './collab-documents.ts';
import type { MakeEndpoint } from './collab-endpoint.ts';
import { meSchema } from './collab-schemas.ts';

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
