// Subjects against patterns, as a NATS server matches them; every transport shares this rule.

import { checkLength, nameInvalid } from './identifier.ts';
import { subjectLimits } from './subject-tokens.ts';

const dot = 0x2e;
const star = 0x2a;
const greater = 0x3e;
const colon = 0x3a;

/**
 * Tells whether a pattern takes a subject: `*` stands for exactly one token, `>` for one or more at
 * the end. It checks nothing and never throws; what NATS refuses (an empty token on either side, a
 * `>` that is not last) simply matches nothing. As in NATS, only a token that is `*` and nothing
 * else is a wildcard: in `foo*` the star is an ordinary character.
 *
 * @example
 * import { matchSubject } from 'millrace/contracts';
 *
 * console.log(matchSubject('gbe.notify.customer.*.alert', 'gbe.notify.customer.c1.alert')); // true
 * console.log(matchSubject('gbe.events.>', 'gbe.events')); // false: `>` wants a token
 */
export function matchSubject(pattern: string, subject: string): boolean {
  const patternEnd = pattern.length;
  const subjectEnd = subject.length;
  let p = 0;
  let s = 0;
  for (;;) {
    // Both stand at the start of a token here, so an end means an empty one.
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
 * Throws unless this is one full subject that every transport can carry: tokens without wildcards,
 * whitespace or control characters, at most 32 of them and below 256 characters in all.
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
 * Throws unless this is a pattern to subscribe with. Stricter than NATS in one point: `foo*` and
 * `>foo` are refused. NATS takes them literally, so whoever meant "begins with foo" would hear
 * nothing and see no error.
 *
 * @example
 * import { validatePattern } from 'millrace/contracts';
 *
 * validatePattern('gbe.notify.customer.*.alert');
 */
export function validatePattern(pattern: string): void {
  validate('subject pattern', pattern);
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
      if (i === tokenStart) return 'holds an empty token: remove the dot that is too many';
      if (i === text.length) break;
      tokenStart = i + 1;
      tokens += 1;
    } else if (code === star || code === greater) {
      const problem = wildcardProblem(text, { at: i, tokenStart, wildcards });
      if (problem !== undefined) return problem;
    } else if (code === colon) {
      return 'holds ":", which separates tokens in Redis stream keys: use "-" or "_"';
    }
  }
  if (tokens > subjectLimits.tokensMax) {
    return `has ${tokens} tokens, at most ${subjectLimits.tokensMax} are allowed`;
  }
  return unprintable.test(text)
    ? 'holds whitespace, control or invisible characters: use letters, digits, "_" and "-"'
    : undefined;
}

/** Lone surrogates and U+FFFD among them: in UTF-8 both come out as the same character. */
const unprintable = /[\s\p{Cc}\p{Cf}\p{Cs}\uFFFD]/u;

function wildcardProblem(
  text: string,
  where: { readonly at: number; readonly tokenStart: number; readonly wildcards: boolean },
): string | undefined {
  const { at, tokenStart, wildcards } = where;
  const wildcard = text.charAt(at);
  const last = at + 1 === text.length;
  if (!wildcards) return `holds "${wildcard}": a message goes to one full subject`;
  if (at !== tokenStart || !(last || text.charCodeAt(at + 1) === dot)) {
    return `holds "${wildcard}" inside a token, which matches itself only: make it a token of its own`;
  }
  return wildcard === '>' && !last
    ? 'holds ">" before its end: use "*" for one token in the middle'
    : undefined;
}
