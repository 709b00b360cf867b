// The schemas of notifications and preferences.

import type { Static, TProperties } from 'typebox';
import { compileSchema, subjectLimits, Type } from 'millrace/contracts';
import { customerLimits as limits } from './customer-limits.ts';
import { weekdays } from './quiet-hours.ts';

/** Senders use all categories except `digest`, which the inbox itself creates. */
const sentCategories = ['alert', 'info', 'maintenance', 'announcement'] as const;
const categories = [...sentCategories, 'digest'] as const;
export type Category = (typeof categories)[number];
export const sentCategory = oneOf(sentCategories);

/** `topic`: ntfy-compatible; `socket`: server-sent events and WebSocket. */
export const channels = ['socket', 'topic', 'email', 'webhook'] as const;
export type Channel = (typeof channels)[number];

/** Other fields are rejected. */
export function object<Fields extends TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false });
}

export function schemaOf<Fields extends TProperties>(fields: Fields) {
  return compileSchema(object(fields));
}

export function oneOf<const Names extends readonly string[]>(names: Names) {
  return Type.Unsafe<Names[number]>(Type.Enum([...names]));
}

/** No database accepts NUL and lone surrogates (`\p{Cs}`). */
export function text(charsMax: number) {
  return Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: '^[^\\u0000\\p{Cs}]*$',
    description: `well-formed text of 1 to ${charsMax} characters`,
  });
}

/** The id of a customer or a notification: one token of a subject. */
export const idPattern = /^[A-Za-z0-9_-]{1,64}$/;
export const idSchema = Type.String({
  pattern: idPattern.source,
  description: '1 to 64 letters, digits, "_" or "-"',
});
export const instant = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  description: 'a time in UTC with milliseconds',
});
export const channelList = Type.Array(oneOf(channels), {
  maxItems: channels.length,
  uniqueItems: true,
});
const millis = (min: number, max: number) => Type.Integer({ minimum: min, maximum: max });

const nag = object({
  everyMs: millis(limits.nagMsMin, limits.nagMsMax),
  /** The maximum number of reminders. */
  times: Type.Integer({ minimum: 1, maximum: limits.nagTimesMax }),
  /** From this reminder on: additional channels, and a copy to another customer. */
  escalate: Type.Optional(
    object({
      after: Type.Integer({ minimum: 1, maximum: limits.nagTimesMax }),
      to: Type.Optional(idSchema),
      channels: Type.Optional(channelList),
    }),
  ),
});

export const origin = object({
  customerId: idSchema,
  notificationId: idSchema,
});

const contentFields = {
  title: text(limits.titleCharsMax),
  body: Type.Optional(text(limits.bodyCharsMax)),
  /** Notifications with the same key within `mergeMs` become one, with a count. */
  key: Type.Optional(text(limits.keyCharsMax)),
  mergeMs: Type.Optional(millis(1, limits.mergeMsMax)),
  /** Reminders until the notification is acknowledged. */
  nag: Type.Optional(nag),
};

/** The fields that a sender can set. */
export const messageFields = {
  ...contentFields,
  /** Adds the notification to the digest of this key and window instead of delivering it. */
  digest: Type.Optional(
    object({
      key: text(limits.keyCharsMax),
      windowMs: millis(limits.digestMsMin, limits.digestMsMax),
    }),
  ),
};

export const messageSchema = object({
  notificationId: idSchema,
  category: sentCategory,
  ...messageFields,
  /** The notification that this one was escalated from. */
  origin: Type.Optional(origin),
});
export type CustomerMessage = Static<typeof messageSchema>;

const digestItem = object({
  title: text(limits.titleCharsMax),
  count: Type.Integer({ minimum: 1 }),
  key: Type.Optional(text(limits.keyCharsMax)),
});

/** A notification as it is held, delivered and repeated by reminders. */
export const noticeSchema = object({
  notificationId: idSchema,
  category: oneOf(categories),
  ...contentFields,
  /** The number of messages merged into this one. */
  count: Type.Integer({ minimum: 1 }),
  origin: Type.Optional(origin),
  /** Set on a digest. */
  digest: Type.Optional(
    object({
      key: text(limits.keyCharsMax),
      from: instant,
      to: instant,
      items: Type.Array(digestItem, { maxItems: limits.digestItemsMax }),
    }),
  ),
});
export type Notice = Static<typeof noticeSchema>;
export type DigestItem = Static<typeof digestItem>;

const time = Type.String({ pattern: '^([01]\\d|2[0-3]):[0-5]\\d$', description: 'HH:MM' });

const categoryPreference = object({
  enabled: Type.Boolean(),
  channels: channelList,
  /** Delivers during quiet hours as well. */
  breaksQuiet: Type.Boolean(),
  /** Collects notifications into digests with windows of this length. */
  digestMs: Type.Optional(millis(limits.digestMsMin, limits.digestMsMax)),
});

export const preferencesSchema = object({
  timeZone: Type.String({ minLength: 1, maxLength: 64, description: 'IANA: Europe/Berlin' }),
  quietHours: Type.Array(
    object({
      from: time,
      to: time,
      days: Type.Optional(
        Type.Array(oneOf(weekdays), { minItems: 1, maxItems: 7, uniqueItems: true }),
      ),
    }),
    { maxItems: limits.quietWindowsMax },
  ),
  /** Default of a category: enabled, channel `socket`, held during quiet hours. */
  categories: object({
    alert: Type.Optional(categoryPreference),
    info: Type.Optional(categoryPreference),
    digest: Type.Optional(categoryPreference),
    maintenance: Type.Optional(categoryPreference),
    announcement: Type.Optional(categoryPreference),
  }),
});
export type Preferences = Static<typeof preferencesSchema>;
export type CategoryPreference = Static<typeof categoryPreference>;

export const contactSchema = object({
  email: Type.Optional(Type.String({ maxLength: 254, pattern: '^[^\\s@<>,;"]+@[^\\s@<>,;"]+$' })),
  webhookUrl: Type.Optional(Type.String({ maxLength: 2_048, pattern: '^https?://[^\\s]+$' })),
  topic: Type.Optional(Type.String({ pattern: `^[A-Za-z0-9_-]{1,${subjectLimits.idCharsMax}}$` })),
});

type Present<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

/** Omits undefined fields: stored events and commands contain absent fields only. */
export function present<Fields extends object>(given: Fields): Present<Fields> {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Present<Fields>;
}
