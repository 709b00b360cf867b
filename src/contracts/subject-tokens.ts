// The variable tokens of subjects: root, customer id, topic and task type, and the limits of subjects.

import { kebabCase, isIdentifier, nameInvalid } from './identifier.ts';

/**
 * Limits of a subject and its parts, on every transport.
 *
 * @example
 * import { subjectLimits } from 'millrace/contracts';
 *
 * console.log(subjectLimits.charsMax); // 255
 */
export const subjectLimits = {
  /** The limit of all names. */
  charsMax: 255,
  /** NATS parses 32 tokens without allocating. */
  tokensMax: 32,
  rootCharsMax: 64,
  idCharsMax: 64,
} as const;

export type SubjectTokenKind = 'customer id' | 'topic' | 'task type';

/** An ASCII token that NATS, Redis keys, URLs and ntfy accept without escaping. */
const plainToken = /^[A-Za-z0-9_-]{1,64}$/;

export function isSubjectToken(kind: SubjectTokenKind, value: string): boolean {
  return plainToken.test(value) && (kind !== 'task type' || isIdentifier(value));
}

/** Accepts `unknown`: a missing id must not become the customer `undefined`. */
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
    `must be one or more tokens of letters, digits, "_" and "-" separated by dots, at most ${subjectLimits.rootCharsMax} characters (gbe, prod.gbe)`,
  );
}

interface Rule {
  readonly reason: string;
  readonly suggest?: (value: string) => string;
}

const rules: Readonly<Record<SubjectTokenKind, Rule>> = {
  // No suggestion: a corrected id could be the id of another customer.
  'customer id': {
    reason:
      'must be 1 to 64 letters, digits, "_" or "-"; use the opaque id of the customer, or a hash of it',
  },
  topic: {
    reason: 'must be 1 to 64 letters, digits, "_" or "-", as in ntfy',
    suggest: (value) => value.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, subjectLimits.idCharsMax),
  },
  'task type': {
    reason:
      'must be kebab-case of at most 64 characters, each part starting with a letter (email-send)',
    suggest: (value) => kebabCase(value).slice(0, subjectLimits.idCharsMax),
  },
};
