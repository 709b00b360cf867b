// The tokens that every name is made of, and the one way to refuse a bad one.

import { MillraceError } from '../foundation/error.ts';

/** Names end up in Redis keys, SQL columns and broker subjects: one bound fits all of them. */
export const nameLimits = {
  keyCharsMax: 255,
  /** The outbox ledger keeps the source stream in 200 characters. */
  streamCharsMax: 200,
  eventTypeCharsMax: 120,
  tenantCharsMax: 60,
} as const;

type Lower =
  | 'a'
  | 'b'
  | 'c'
  | 'd'
  | 'e'
  | 'f'
  | 'g'
  | 'h'
  | 'i'
  | 'j'
  | 'k'
  | 'l'
  | 'm'
  | 'n'
  | 'o'
  | 'p'
  | 'q'
  | 'r'
  | 's'
  | 't'
  | 'u'
  | 'v'
  | 'w'
  | 'x'
  | 'y'
  | 'z';
type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';

type IsIdentifierRest<S extends string> = S extends ''
  ? true
  : S extends `-${Lower}${infer Rest}`
    ? IsIdentifierRest<Rest>
    : S extends `${Lower | Digit}${infer Rest}`
      ? IsIdentifierRest<Rest>
      : false;

/** `true` for a kebab-case literal, `false` for another literal, `true` for a plain `string`. */
export type IsIdentifier<S extends string> = string extends S
  ? true
  : S extends `${Lower}${infer Rest}`
    ? IsIdentifierRest<Rest>
    : false;

/** The literal itself when TypeScript can see that it is kebab-case; otherwise the reason. */
export type Identifier<S extends string> =
  IsIdentifier<S> extends true ? S : `'${S}' is not kebab-case`;

/** Kebab-case whose every part starts with a letter, so that camelCase and back is the identity. */
export const identifierPattern = '[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*';
export const versionPattern = '[1-9][0-9]{0,8}';
export const idPattern = '[A-Za-z0-9._-]+';

const identifier = new RegExp(`^${identifierPattern}$`);
const id = new RegExp(`^${idPattern}$`);
const onePart = /^[a-z][a-z0-9]*$/;

/** Tells a plain kebab-case token from everything else. */
export function isIdentifier(text: string): boolean {
  return identifier.test(text);
}

export function checkIdentifier(kind: string, text: string): void {
  if (identifier.test(text)) return;
  throw nameInvalid(
    kind,
    text,
    'must be kebab-case, each part starting with a letter (core-template-manager)',
    kebabCase(text),
  );
}

export function checkVersion(version: number): void {
  if (Number.isInteger(version) && version >= 1 && version <= 999_999_999) return;
  throw nameInvalid('version', String(version), 'must be a whole number from 1');
}

export function checkId(kind: string, text: string): void {
  if (id.test(text)) return;
  throw nameInvalid(kind, text, 'may hold letters, digits, ".", "_" and "-" only');
}

export function checkLength(name: string, charsMax: number): void {
  if (name.length <= charsMax) return;
  throw new MillraceError(
    'KEY_TOO_LONG',
    `'${name.slice(0, 60)}…' has ${name.length} characters, at most ${charsMax} are allowed`,
    { details: { length: name.length, charsMax } },
  );
}

/** `core-template-manager` → `coreTemplateManager`: a category must not hold a hyphen. */
export function camelCase(kebab: string): string {
  return kebab.includes('-')
    ? kebab.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase())
    : kebab;
}

/** The reverse of `camelCase`; on anything else, a guess that is good enough for a suggestion. */
export function kebabCase(text: string): string {
  // Most names have one part, and nothing to change.
  if (onePart.test(text)) return text;
  return text
    .replace(/([A-Z])/g, '-$1')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-(?=[0-9])/g, '')
    .replace(/^[-0-9]+|-+$/g, '');
}

export function nameInvalid(
  kind: string,
  value: string,
  reason: string,
  suggestion?: string,
): MillraceError {
  // A hostile name must not flood the log that quotes it.
  const shown = value.length > 80 ? `${value.slice(0, 80)}…` : value;
  const useful = suggestion !== undefined && suggestion !== '' && suggestion !== value;
  return new MillraceError(
    'NAME_INVALID',
    `${kind} '${shown}' is not valid: ${reason}${useful ? `; did you mean '${suggestion}'?` : ''}`,
    { details: { kind, value: shown, reason, ...(useful ? { suggestion } : {}) } },
  );
}
