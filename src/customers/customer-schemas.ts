// What customers are told, and how they want it: the shapes of messages and preferences.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import type { Static, TSchema } from 'typebox';
import { Type } from '../contracts/type.ts';
import { compileSchema } from '../contracts/schema.ts';
import { customerLimits as limits } from './customer-limits.ts';
import { weekdays } from './quiet-hours.ts';

/** Whatever a customer can be told. A digest is made here; nobody sends one. */
const categories = ['alert', 'info', 'digest', 'maintenance', 'announcement'] as const;
export type Category = (typeof categories)[number];

/** `topic`: the ntfy-compatible one; `socket`: SSE and WebSocket. */
export const channels = ['socket', 'topic', 'email', 'webhook'] as const;
export type Channel = (typeof channels)[number];

const closed = { additionalProperties: false } as const;

function oneOf<const Names extends readonly string[]>(names: Names) {
  return Type.Unsafe<Names[number]>(Type.Enum([...names]));
}

/** NUL and halves of surrogate pairs fit into no database; `\p{Cs}` are the halves. */
function text(charsMax: number) {
  return Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: '^[^\\u0000\\p{Cs}]*$',
    description: `well-formed text of 1 to ${charsMax} characters`,
  });
}

/** One token of a subject. */
export const customerIdSchema = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: '1 to 64 letters, digits, "_" or "-"',
});
export const notificationIdSchema = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: '1 to 64 letters, digits, "_" or "-"',
});
const instant = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  description: 'a moment in UTC, with milliseconds',
});
const channelList = Type.Array(oneOf(channels), { maxItems: channels.length, uniqueItems: true });
const millis = (min: number, max: number) => Type.Integer({ minimum: min, maximum: max });

const nag = Type.Object(
  {
    everyMs: millis(limits.nagMsMin, limits.nagMsMax),
    /** Reminders at most. */
    times: Type.Integer({ minimum: 1, maximum: limits.nagTimesMax }),
    /** With this reminder and all later ones: more channels, and somebody else. */
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

/** What every sender may say. */
export const messageFields = {
  title: text(limits.titleCharsMax),
  body: Type.Optional(text(limits.bodyCharsMax)),
  /** Those of one key within `mergeMs` are one notification, with a count. */
  key: Type.Optional(text(limits.keyCharsMax)),
  mergeMs: Type.Optional(millis(1, limits.mergeMsMax)),
  /** Not at once, but in the digest of this key and window. */
  digest: Type.Optional(
    Type.Object(
      {
        key: text(limits.keyCharsMax),
        windowMs: millis(limits.digestMsMin, limits.digestMsMax),
      },
      closed,
    ),
  ),
  /** Until it is acknowledged. */
  nag: Type.Optional(nag),
};

export const messageSchema = Type.Object(
  {
    notificationId: notificationIdSchema,
    category: oneOf(['alert', 'info', 'maintenance', 'announcement']),
    ...messageFields,
    /** Escalated from there. */
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

/** A message on its way: as it is held, delivered and reminded of. */
export const noticeSchema = Type.Object(
  {
    notificationId: notificationIdSchema,
    category: oneOf(categories),
    title: text(limits.titleCharsMax),
    body: Type.Optional(text(limits.bodyCharsMax)),
    key: Type.Optional(text(limits.keyCharsMax)),
    mergeMs: Type.Optional(millis(1, limits.mergeMsMax)),
    /** How many alike messages it stands for. */
    count: Type.Integer({ minimum: 1 }),
    nag: Type.Optional(nag),
    origin: Type.Optional(origin),
    /** Of a digest. */
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
    /** Also in quiet hours. */
    breaksQuiet: Type.Boolean(),
    /** Not one by one, but in digests of such windows. */
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
    /** What is not said is as it is by default: on, by `socket`, not in quiet hours. */
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

export const fields = { instant, channelList, origin, oneOf, closed, text } as const;

/** A definition as payloads are checked by it and as the reference shows it. */
export function payload<Definition extends TSchema>(
  definition: Definition,
): StandardSchemaV1<Static<Definition>, Static<Definition>> {
  const compiled = compileSchema(definition);
  const shown = (): Record<string, unknown> => ({ ...(definition as object) });
  const jsonSchema: StandardJSONSchemaV1.Converter = { input: shown, output: shown };
  return { '~standard': { ...compiled['~standard'], jsonSchema } } as StandardSchemaV1<
    Static<Definition>,
    Static<Definition>
  >;
}
