// `app:{core}:collab:user:v1:<userId>`: how others see a user. The address is not here: whoever sends a mail
// asks the user itself, so that someone who was forgotten has none at once.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import {
  emailPreferenceDefault,
  type EmailPreference,
  type userPreferencesChanged,
  type userProfileChanged,
  type userRegistered,
} from './user-events.ts';

export interface UserDocument {
  readonly userId: string;
  readonly username: string;
  readonly displayName?: string;
  readonly emailPreference: EmailPreference;
  readonly registeredAt: string;
}

type Registered = ProjectedEvent<ReturnType<typeof userRegistered.parse>>;
type ProfileChanged = ProjectedEvent<ReturnType<typeof userProfileChanged.parse>>;
type PreferencesChanged = ProjectedEvent<ReturnType<typeof userPreferencesChanged.parse>>;

export const userProjection = projection({
  name: 'sub:collab:user-projection:v1',
  readModel: readModel<UserDocument>({
    bc: 'collab',
    aggregate: 'user',
    version: 1,
    indexes: { username: ({ username }) => username.toLowerCase() },
  }),
  on: {
    'user.registered.v1': (_before, { payload, aggregate, occurredAt }: Registered) => ({
      userId: aggregate.id,
      username: payload.username,
      ...(payload.displayName === undefined ? {} : { displayName: payload.displayName }),
      emailPreference: emailPreferenceDefault,
      registeredAt: occurredAt,
    }),
    'user.profile-changed.v1': (before, { payload: { displayName } }: ProfileChanged) => {
      if (before === null) return null;
      const { displayName: _old, ...rest } = before;
      return displayName === undefined ? rest : { ...rest, displayName };
    },
    'user.preferences-changed.v1': (before, { payload }: PreferencesChanged) =>
      before === null ? null : { ...before, emailPreference: payload.email },
  },
  onForgotten: () => null,
});
