// Valid subjects and patterns, matching by the rules of NATS on every transport, and Redis stream keys of subjects.

import { checkLength, nameInvalid } from './identifier.ts';
import { subjectLimits } from './subject-tokens.ts';

const dot = 0x2e;
const star = 0x2a;
const greater = 0x3e;
const colon = 0x3a;

/**
 * Whether a pattern matches a subject: `*` matches exactly one token, `>` one or more at the end. It
 * never throws: input that NATS rejects (an empty token, a `>` that is not last) matches nothing. As
 * in NATS, `*` is a wildcard only as a whole token: in `foo*` it is an ordinary character.
 *
 * @example
 * import { matchSubject } from 'millrace/contracts';
 *
 * console.log(matchSubject('gbe.notify.customer.*.alert', 'gbe.notify.customer.c1.alert')); // true
 * console.log(matchSubject('gbe.events.>', 'gbe.events')); // false: `>` needs a token
 */
export function matchSubject(pattern: string, subject: string): boolean {
  const patternEnd = pattern.length;
  const subjectEnd = subject.length;
  let p = 0;
  let s = 0;
  for (;;) {
    // Both indexes are at the start of a token, so an end here means an empty token.
    if (p === patternEnd || s === subjectEnd) return false;
    const first = pattern.charCodeAt(p);
    const alone = p + 1 === patternEnd || pattern.charCodeAt(p + 1) === dot;
    if (first === greater && alone) return p + 1 === patternEnd && hasNoEmptyToken(subject, s);

    const start = s;
    if (first === star && alone) {
      p += 1;
      while (s < subjectEnd && subject.charCodeAt(s) !== dot) s += 1;
    } else {
      for (; p < patternEnd; p += 1, s += 1) {
        const code = pattern.charCodeAt(p);
        if (code === dot) break;
        if (s === subjectEnd || subject.charCodeAt(s) !== code) return false;
      }
      if (s < subjectEnd && subject.charCodeAt(s) !== dot) return false;
    }
    if (s === start) return false;
    if (p === patternEnd || s === subjectEnd) return p === patternEnd && s === subjectEnd;
    p += 1;
    s += 1;
  }
}

function hasNoEmptyToken(subject: string, from: number): boolean {
  let tokenStart = from;
  for (let i = from; i < subject.length; i += 1) {
    if (subject.charCodeAt(i) !== dot) continue;
    if (i === tokenStart) return false;
    tokenStart = i + 1;
  }
  return tokenStart < subject.length;
}

/**
 * Throws unless the string is a full subject that every transport accepts: at most 32 tokens without
 * wildcards, whitespace or control characters, at most 255 characters in total.
 *
 * @example
 * import { validateSubject } from 'millrace/contracts';
 *
 * validateSubject('gbe.events.audit.change');
 */
export function validateSubject(subject: string): void {
  validate('subject', subject);
}

/**
 * Throws unless the string is a pattern to subscribe with. Stricter than NATS, which treats `foo*` and
 * `>foo` as literal text: a subscriber that means "starts with foo" would silently receive nothing.
 *
 * @example
 * import { validatePattern } from 'millrace/contracts';
 *
 * validatePattern('gbe.notify.customer.*.alert');
 */
export function validatePattern(pattern: string): void {
  validate('subject pattern', pattern);
}

/**
 * The key of a subject's Redis stream: the subject with `:` for `.`. The mapping is reversible because
 * `validateSubject` rejects `:` in a subject.
 *
 * @example
 * import { subjectToStreamKey } from 'millrace/contracts';
 *
 * console.log(subjectToStreamKey('gbe.tasks.email-send.queue')); // gbe:tasks:email-send:queue
 */
export function subjectToStreamKey(subject: string): string {
  validateSubject(subject);
  return subject.replaceAll('.', ':');
}

/**
 * The subject of a Redis stream key; the reverse of `subjectToStreamKey`.
 *
 * @example
 * import { streamKeyToSubject } from 'millrace/contracts';
 *
 * console.log(streamKeyToSubject('gbe:tasks:email-send:queue')); // gbe.tasks.email-send.queue
 */
export function streamKeyToSubject(key: string): string {
  if (key.includes('.')) {
    throw nameInvalid(
      'stream key',
      key,
      'contains "." where a stream key has ":": is it a subject?',
    );
  }
  const subject = key.replaceAll(':', '.');
  validateSubject(subject);
  return subject;
}

type Kind = 'subject' | 'subject pattern';

function validate(kind: Kind, text: unknown): void {
  if (typeof text !== 'string') throw nameInvalid(kind, String(text), 'must be a string');
  checkLength(text, subjectLimits.charsMax);
  const reason = problemOf(text, kind === 'subject pattern');
  if (reason !== undefined) throw nameInvalid(kind, text, reason);
}

function problemOf(text: string, wildcards: boolean): string | undefined {
  let tokens = 1;
  let tokenStart = 0;
  for (let i = 0; i <= text.length; i += 1) {
    const code = i === text.length ? dot : text.charCodeAt(i);
    if (code === dot) {
      if (i === tokenStart) return 'contains an empty token: remove the extra dot';
      if (i === text.length) break;
      tokenStart = i + 1;
      tokens += 1;
    } else if (code === star || code === greater) {
      const problem = wildcardProblem(text, { at: i, tokenStart, wildcards });
      if (problem !== undefined) return problem;
    } else if (code === colon) {
      return 'contains ":", which separates tokens in Redis stream keys: use "-" or "_"';
    }
  }
  if (tokens > subjectLimits.tokensMax) {
    return `has ${tokens} tokens; the limit is ${subjectLimits.tokensMax}`;
  }
  return unprintable.test(text)
    ? 'contains whitespace, control or invisible characters: use letters, digits, "_" and "-"'
    : undefined;
}

/** Includes lone surrogates and U+FFFD, which UTF-8 encodes as the same character. */
const unprintable = /[\s\p{Cc}\p{Cf}\p{Cs}\uFFFD]/u;

function wildcardProblem(
  text: string,
  where: { readonly at: number; readonly tokenStart: number; readonly wildcards: boolean },
): string | undefined {
  const { at, tokenStart, wildcards } = where;
  const wildcard = text.charAt(at);
  const last = at + 1 === text.length;
  if (!wildcards) return `contains "${wildcard}": a message is published to one full subject`;
  if (at !== tokenStart || !(last || text.charCodeAt(at + 1) === dot)) {
    return `contains "${wildcard}" inside a token, where it is not a wildcard: use it as a whole token`;
  }
  return wildcard === '>' && !last
    ? 'contains ">" before its end: use "*" for one token in the middle'
    : undefined;
}
