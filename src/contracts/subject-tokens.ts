// The variable parts of our subjects: what a root, customer id, topic or task type may look like.

import { kebabCase, isIdentifier, nameInvalid } from './identifier.ts';

/**
 * How large a subject and its parts may be, on every transport.
 *
 * @example
 * import { subjectLimits } from 'millrace/contracts';
 *
 * console.log(subjectLimits.charsMax); // 255
 */
export const subjectLimits = {
  /** "Below 256": the bound that all names share. */
  charsMax: 255,
  /** NATS keeps 32 tokens without allocating; a deeper subject is an attack or a mistake. */
  tokensMax: 32,
  rootCharsMax: 64,
  idCharsMax: 64,
} as const;

export type SubjectTokenKind = 'customer id' | 'topic' | 'task type';

/** One token of ASCII that NATS, Redis keys, URLs and ntfy all take as it is. */
const plainToken = /^[A-Za-z0-9_-]{1,64}$/;

export function isSubjectToken(kind: SubjectTokenKind, value: string): boolean {
  return plainToken.test(value) && (kind !== 'task type' || isIdentifier(value));
}

/** Takes `unknown`, since a missing id would otherwise become the customer `undefined`. */
export function checkSubjectToken(kind: SubjectTokenKind, value: unknown): void {
  if (typeof value !== 'string') throw nameInvalid(kind, String(value), 'must be a string');
  if (isSubjectToken(kind, value)) return;
  const { reason, suggest } = rules[kind];
  throw nameInvalid(kind, value, reason, suggest?.(value));
}

export function checkSubjectRoot(value: unknown): void {
  if (typeof value !== 'string')
    throw nameInvalid('subject root', String(value), 'must be a string');
  const fits = value.length <= subjectLimits.rootCharsMax;
  if (fits && value.split('.').every((token) => plainToken.test(token))) return;
  throw nameInvalid(
    'subject root',
    value,
    `must be one or more tokens of letters, digits, "_" and "-" with dots between them, at most ${subjectLimits.rootCharsMax} characters (gbe, prod.gbe)`,
  );
}

interface Rule {
  readonly reason: string;
  readonly suggest?: (value: string) => string;
}

const rules: Readonly<Record<SubjectTokenKind, Rule>> = {
  // Nothing is suggested: a mended id may be the id of another customer.
  'customer id': {
    reason:
      'must be 1 to 64 letters, digits, "_" or "-"; use the opaque id of the customer, or a hash of it',
  },
  topic: {
    reason: 'must be 1 to 64 letters, digits, "_" or "-", as ntfy has it',
    suggest: (value) => value.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, subjectLimits.idCharsMax),
  },
  'task type': {
    reason:
      'must be kebab-case of at most 64 characters, each part starting with a letter (email-send)',
    suggest: (value) => kebabCase(value).slice(0, subjectLimits.idCharsMax),
  },
};
