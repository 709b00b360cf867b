// The schemas of notifications and preferences.

import type { Static } from 'typebox';
import { Type } from 'millrace/contracts';
import { customerLimits as limits } from './customer-limits.ts';
import { weekdays } from './quiet-hours.ts';

/** Senders use all categories except `digest`, which the inbox creates. */
const categories = ['alert', 'info', 'digest', 'maintenance', 'announcement'] as const;
export type Category = (typeof categories)[number];

/** `topic`: ntfy-compatible; `socket`: server-sent events and WebSocket. */
export const channels = ['socket', 'topic', 'email', 'webhook'] as const;
export type Channel = (typeof channels)[number];

const closed = { additionalProperties: false } as const;

function oneOf<const Names extends readonly string[]>(names: Names) {
  return Type.Unsafe<Names[number]>(Type.Enum([...names]));
}

/** No database accepts NUL and lone surrogates (`\p{Cs}`). */
function text(charsMax: number) {
  return Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: '^[^\\u0000\\p{Cs}]*$',
    description: `well-formed text of 1 to ${charsMax} characters`,
  });
}

/** A customer id is one token of a subject. */
export const customerIdPattern = /^[A-Za-z0-9_-]{1,64}$/;
export const customerIdSchema = Type.String({
  pattern: customerIdPattern.source,
  description: '1 to 64 letters, digits, "_" or "-"',
});
export const notificationIdSchema = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: '1 to 64 letters, digits, "_" or "-"',
});
const instant = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  description: 'a time in UTC with milliseconds',
});
const channelList = Type.Array(oneOf(channels), { maxItems: channels.length, uniqueItems: true });
const millis = (min: number, max: number) => Type.Integer({ minimum: min, maximum: max });

const nag = Type.Object(
  {
    everyMs: millis(limits.nagMsMin, limits.nagMsMax),
    /** The maximum number of reminders. */
    times: Type.Integer({ minimum: 1, maximum: limits.nagTimesMax }),
    /** From this reminder on: additional channels, and a copy to another customer. */
    escalate: Type.Optional(
      Type.Object(
        {
          after: Type.Integer({ minimum: 1, maximum: limits.nagTimesMax }),
          to: Type.Optional(customerIdSchema),
          channels: Type.Optional(channelList),
        },
        closed,
      ),
    ),
  },
  closed,
);

const origin = Type.Object(
  { customerId: customerIdSchema, notificationId: notificationIdSchema },
  closed,
);

/** The fields that a sender can set. */
export const messageFields = {
  title: text(limits.titleCharsMax),
  body: Type.Optional(text(limits.bodyCharsMax)),
  /** Notifications with the same key within `mergeMs` become one, with a count. */
  key: Type.Optional(text(limits.keyCharsMax)),
  mergeMs: Type.Optional(millis(1, limits.mergeMsMax)),
  /** Adds the notification to the digest of this key and window instead of delivering it. */
  digest: Type.Optional(
    Type.Object(
      {
        key: text(limits.keyCharsMax),
        windowMs: millis(limits.digestMsMin, limits.digestMsMax),
      },
      closed,
    ),
  ),
  /** Reminders until the notification is acknowledged. */
  nag: Type.Optional(nag),
};

export const messageSchema = Type.Object(
  {
    notificationId: notificationIdSchema,
    category: oneOf(['alert', 'info', 'maintenance', 'announcement']),
    ...messageFields,
    /** The notification that this one was escalated from. */
    origin: Type.Optional(origin),
  },
  closed,
);
export type CustomerMessage = Static<typeof messageSchema>;

const digestItem = Type.Object(
  {
    title: text(limits.titleCharsMax),
    count: Type.Integer({ minimum: 1 }),
    key: Type.Optional(text(limits.keyCharsMax)),
  },
  closed,
);

/** A notification as it is held, delivered and repeated by reminders. */
export const noticeSchema = Type.Object(
  {
    notificationId: notificationIdSchema,
    category: oneOf(categories),
    title: text(limits.titleCharsMax),
    body: Type.Optional(text(limits.bodyCharsMax)),
    key: Type.Optional(text(limits.keyCharsMax)),
    mergeMs: Type.Optional(millis(1, limits.mergeMsMax)),
    /** The number of messages merged into this one. */
    count: Type.Integer({ minimum: 1 }),
    nag: Type.Optional(nag),
    origin: Type.Optional(origin),
    /** Set on a digest. */
    digest: Type.Optional(
      Type.Object(
        {
          key: text(limits.keyCharsMax),
          from: instant,
          to: instant,
          items: Type.Array(digestItem, { maxItems: limits.digestItemsMax }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type Notice = Static<typeof noticeSchema>;
export type DigestItem = Static<typeof digestItem>;

const time = Type.String({ pattern: '^([01]\\d|2[0-3]):[0-5]\\d$', description: 'HH:MM' });

const categoryPreference = Type.Object(
  {
    enabled: Type.Boolean(),
    channels: channelList,
    /** Delivers during quiet hours as well. */
    breaksQuiet: Type.Boolean(),
    /** Collects notifications into digests with windows of this length. */
    digestMs: Type.Optional(millis(limits.digestMsMin, limits.digestMsMax)),
  },
  closed,
);

export const preferencesSchema = Type.Object(
  {
    timeZone: Type.String({ minLength: 1, maxLength: 64, description: 'IANA: Europe/Berlin' }),
    quietHours: Type.Array(
      Type.Object(
        {
          from: time,
          to: time,
          days: Type.Optional(
            Type.Array(oneOf(weekdays), { minItems: 1, maxItems: 7, uniqueItems: true }),
          ),
        },
        closed,
      ),
      { maxItems: limits.quietWindowsMax },
    ),
    /** Default of a category: enabled, channel `socket`, held during quiet hours. */
    categories: Type.Object(
      {
        alert: Type.Optional(categoryPreference),
        info: Type.Optional(categoryPreference),
        digest: Type.Optional(categoryPreference),
        maintenance: Type.Optional(categoryPreference),
        announcement: Type.Optional(categoryPreference),
      },
      closed,
    ),
  },
  closed,
);
export type Preferences = Static<typeof preferencesSchema>;
export type CategoryPreference = Static<typeof categoryPreference>;

/** Omits undefined fields: events, commands and queries accept absent fields only. */
export function present<Fields extends object>(
  given: Fields,
): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as {
    [Name in keyof Fields]: Exclude<Fields[Name], undefined>;
  };
}

export const fields = { instant, channelList, origin, oneOf, closed, text } as const;
