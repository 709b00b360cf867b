// What can happen to a user, and who holds which name. Names and addresses are personal data: their events
// carry the user as their data subject (`register-user.ts`), and no other event repeats an address.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { name, streamId, username } from './fields.ts';

/** `mentions`: only what was given to this user by name. */
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

/** A stream for each name, in lower case: the first one to come has it. */
export const usernameClaimed = defineEvent('username.claimed.v1', claim);
export const claimUsername = defineCommand('username.claim', claim);
