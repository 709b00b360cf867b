// Events and commands of users and of user names. Names and addresses are personal data: `ensureUser` sets the
// user as the data subject of these events, and no other event contains an address.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { name, streamId, username } from './fields.ts';

/** `mentions`: e-mail only about tasks that are assigned to the user. */
const emailPreference = z.enum(['all', 'mentions', 'none']);
export type EmailPreference = z.infer<typeof emailPreference>;
export const emailPreferenceDefault: EmailPreference = 'mentions';

const email = z.email().max(254);
const profile = z.object({ email: email.optional(), displayName: name.optional() });
const registration = profile.extend({ username });
const preferences = z.object({ email: emailPreference });
const claim = z.object({ userId: streamId });

export const userRegistered = defineEvent('user.registered.v1', registration);
export const userProfileChanged = defineEvent('user.profile-changed.v1', profile);
export const userPreferencesChanged = defineEvent('user.preferences-changed.v1', preferences);
export const registerUser = defineCommand('user.register', registration);
export const changeProfile = defineCommand('user.change-profile', profile);
export const changePreferences = defineCommand('user.change-preferences', preferences);

/** One stream per lower-case name: the first claim wins. */
export const usernameClaimed = defineEvent('username.claimed.v1', claim);
export const claimUsername = defineCommand('username.claim', claim);
