// Event types, `<agg>.<action>.v<version>`: the aggregate, what happened to it, and the schema version.

import {
  checkLength,
  checkVersion,
  eventTokenPattern,
  kebabCase,
  nameInvalid,
  nameLimits,
  versionPattern,
  type EventToken,
  type IsEventToken,
} from './identifier.ts';

export interface ParsedEventType {
  readonly agg: string;
  readonly action: string;
  readonly version: number;
}

export const eventTypePattern = `(${eventTokenPattern})\\.(${eventTokenPattern})\\.v(${versionPattern})`;
const eventType = new RegExp(`^${eventTypePattern}$`);
const eventToken = new RegExp(`^${eventTokenPattern}$`);

/** The literal itself when TypeScript can see that it is an event type; otherwise the reason. */
export type EventType<S extends string> = string extends S
  ? S
  : S extends `${infer Agg}.${infer Action}.v${infer Version extends number}`
    ? IsEventToken<Agg> extends true
      ? IsEventToken<Action> extends true
        ? `${Version}` extends `${string}.${string}` | `-${string}` | '0'
          ? `'${S}' has no whole version from 1`
          : S
        : `'${Action}' is not kebab-case`
      : `'${Agg}' is not kebab-case`
    : `'${S}' is not <agg>.<action>.v<version>`;

/**
 * Builds `<agg>.<action>.v<version>`; the action is a past-tense verb.
 *
 * @example
 * import { buildEventType } from 'millrace/contracts';
 *
 * console.log(buildEventType('payment', 'completed', 1)); // payment.completed.v1
 */
export function buildEventType<
  const Agg extends string,
  const Action extends string,
  const Version extends number,
>(agg: EventToken<Agg>, action: EventToken<Action>, v: Version): `${Agg}.${Action}.v${Version}` {
  checkToken('aggregate', agg);
  checkToken('action', action);
  checkVersion(v);
  const built = `${agg}.${action}.v${v}`;
  checkLength(built, nameLimits.eventTypeCharsMax);
  return built as `${Agg}.${Action}.v${Version}`;
}

/**
 * Parses an event type.
 *
 * @example
 * import { parseEventType } from 'millrace/contracts';
 *
 * const { agg, action, version } = parseEventType('payment.completed.v1');
 */
export function parseEventType(type: string): ParsedEventType {
  const match = type.length <= nameLimits.eventTypeCharsMax ? eventType.exec(type) : null;
  if (match === null) {
    throw nameInvalid(
      'event type',
      type,
      'must be <agg>.<action>.v<version> in kebab-case, such as payment.completed.v1',
      suggestEventType(type),
    );
  }
  const [, agg = '', action = '', version = ''] = match;
  return { agg, action, version: Number(version) };
}

/**
 * Whether a string is a valid event type.
 *
 * @example
 * import { isEventType } from 'millrace/contracts';
 *
 * console.log(isEventType('payment.completed.v1'), isEventType('PaymentCompleted')); // true false
 */
export function isEventType(type: string): boolean {
  return type.length <= nameLimits.eventTypeCharsMax && eventType.test(type);
}

function checkToken(kind: string, token: string): void {
  if (eventToken.test(token)) return;
  throw nameInvalid(kind, token, 'must be kebab-case (message-posted)', kebabCase(token));
}

/** The corrected spelling, if the string has three parts. */
function suggestEventType(type: string): string | undefined {
  const parts = /^([^.]+)\.([^.]+)\.v0*([1-9][0-9]{0,8})$/i.exec(type);
  if (parts === null) return undefined;
  const [, agg = '', action = '', version = ''] = parts;
  const suggestion = `${kebabCase(agg)}.${kebabCase(action)}.v${version}`;
  return isEventType(suggestion) ? suggestion : undefined;
}
