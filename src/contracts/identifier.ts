// The parts of every name: kebab-case identifiers, versions and ids, their limits, and the error for an invalid one.

import { MillraceError } from '../foundation/error.ts';

/** Names are stored in Redis keys, SQL columns and broker subjects; these limits fit all of them. */
export const nameLimits = {
  keyCharsMax: 255,
  /** The outbox column for the source stream has 200 characters. */
  streamCharsMax: 200,
  eventTypeCharsMax: 120,
  tenantCharsMax: 60,
} as const;

type LettersOf<S extends string> = S extends `${infer First}${infer Rest}`
  ? First | LettersOf<Rest>
  : never;
type Lower = LettersOf<'abcdefghijklmnopqrstuvwxyz'>;
type Digit = LettersOf<'0123456789'>;

type IsKebabRest<S extends string, AfterHyphen extends string> = S extends ''
  ? true
  : S extends `-${AfterHyphen}${infer Rest}`
    ? IsKebabRest<Rest, AfterHyphen>
    : S extends `${Lower | Digit}${infer Rest}`
      ? IsKebabRest<Rest, AfterHyphen>
      : false;

type IsKebab<S extends string, AfterHyphen extends string> = string extends S
  ? true
  : S extends `${Lower | Digit}${infer Rest}`
    ? IsKebabRest<Rest, AfterHyphen>
    : false;

/** `true` for a kebab-case literal, `false` for another literal, `true` for a plain `string`. */
export type IsIdentifier<S extends string> = IsKebab<S, Lower>;

/** As `IsIdentifier`, for the parts of an event type: a digit may follow a hyphen. */
export type IsEventToken<S extends string> = IsKebab<S, Lower | Digit>;

/** The literal itself when TypeScript can see that it is kebab-case; otherwise the reason. */
export type Identifier<S extends string> =
  IsIdentifier<S> extends true ? S : `'${S}' is not kebab-case`;

/** The literal itself when TypeScript can see that it can be a part of an event type; otherwise the reason. */
export type EventToken<S extends string> =
  IsEventToken<S> extends true ? S : `'${S}' is not kebab-case`;

/** A letter follows each hyphen: only then does camelCase convert back to the same kebab-case. */
export const identifierPattern = '[a-z0-9]+(?:-[a-z][a-z0-9]*)*';
/** The parts of an event type are never converted to camelCase. */
export const eventTokenPattern = '[a-z0-9]+(?:-[a-z0-9]+)*';
export const versionPattern = '[1-9][0-9]{0,8}';
export const idPattern = '[A-Za-z0-9._-]+';

const identifier = new RegExp(`^${identifierPattern}$`);
const idShape = new RegExp(`^${idPattern}$`);
const onePart = /^[a-z0-9]+$/;

export function isIdentifier(text: string): boolean {
  return identifier.test(text);
}

export function checkIdentifier(kind: string, text: string): void {
  if (identifier.test(text)) return;
  throw nameInvalid(
    kind,
    text,
    'must be kebab-case, with a letter after each hyphen (core-template-manager)',
    kebabCase(text),
  );
}

export function checkVersion(version: number): void {
  if (Number.isInteger(version) && version >= 1 && version <= 999_999_999) return;
  throw nameInvalid('version', String(version), 'must be a positive integer');
}

export function checkId(kind: string, text: string): void {
  if (idShape.test(text)) return;
  throw nameInvalid(kind, text, 'may contain letters, digits, ".", "_" and "-" only');
}

/**
 * Rejects ids that look like an e-mail address or a phone number, because keys appear in dashboards
 * and logs. Ten to fifteen digits count as a phone number; an order number of that length needs a
 * prefix (`order-…`).
 */
export function checkNoPersonalData(id: string): void {
  const kind = personalDataKind(id);
  if (kind === undefined) return;
  throw new MillraceError(
    'KEY_HOLDS_PERSONAL_DATA',
    `an id that looks like ${kind} must not become part of a key: use an opaque id`,
    { details: { kind } },
  );
}

const email = /^[^@\s]+@[^@\s]+$/;
const phoneGroups = /^\+?\(?\d{1,4}\)?(?:[ .-]?\(?\d{2,4}\)?){2,5}$/;
const date = /^(?:19|20)\d\d[.-]?(?:0[1-9]|1[0-2])[.-]?(?:0[1-9]|[12]\d|3[01])(?:[.-]?\d{2,6})?$/;

export function personalDataKind(id: string): string | undefined {
  if (email.test(id)) return 'an e-mail address';
  if (!phoneGroups.test(id) || date.test(id)) return undefined;
  const digits = id.replace(/\D/g, '').length;
  const marked = id.startsWith('+') || id.startsWith('0');
  return digits <= 15 && digits >= (marked ? 7 : 10) ? 'a phone number' : undefined;
}

export function checkLength(name: string, charsMax: number): void {
  if (name.length <= charsMax) return;
  throw new MillraceError(
    'KEY_TOO_LONG',
    `'${name.slice(0, 60)}…' has ${name.length} characters; the limit is ${charsMax}`,
    { details: { length: name.length, charsMax } },
  );
}

/** `core-template-manager` → `coreTemplateManager`: a category must not contain a hyphen. */
export function camelCase(kebab: string): string {
  return kebab.includes('-')
    ? kebab.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase())
    : kebab;
}

/** The reverse of `camelCase`; for any other string, a guess for the suggestion in an error. */
export function kebabCase(text: string): string {
  // Fast path: most names have one part.
  if (onePart.test(text)) return text;
  return text
    .replace(/([A-Z])/g, '-$1')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-(?=[0-9])/g, '')
    .replace(/^-+|-+$/g, '');
}

export function nameInvalid(
  kind: string,
  value: string,
  reason: string,
  suggestion?: string,
): MillraceError {
  // A very long name must not flood the log.
  const shown = value.length > 80 ? `${value.slice(0, 80)}…` : value;
  const useful = suggestion !== undefined && suggestion !== '' && suggestion !== value;
  return new MillraceError(
    'NAME_INVALID',
    `${kind} '${shown}' is not valid: ${reason}${useful ? `; did you mean '${suggestion}'?` : ''}`,
    { details: { kind, value: shown, reason, ...(useful ? { suggestion } : {}) } },
  );
}
