// Subjects and patterns, `gbe.<domain>.…`, and the Redis stream keys that mirror them with colons.

import { parseSubject } from '../../subject-parse.ts';
import { validatePattern } from '../../subject-match.ts';
import { subjectRootDefault } from '../../subjects.ts';
import { attempt } from '../builders.ts';
import { closest } from '../../../foundation/closest.ts';
import type { Report } from '../finding.ts';
import { isInHierarchy, mendTokens, subjectCode, subjectDomains } from '../read-subject.ts';
import type { TextRule } from '../rule.ts';
import { guessIdentifier } from '../spelling.ts';
import { fragmentCode, hasHole, quote, type Text } from '../text.ts';
import { wordsOf } from '../words.ts';

interface Found {
  readonly separator: '.' | ':';
  /** The root as written, a hole where it is computed. */
  readonly root: string;
  readonly tokens: readonly string[];
}

export const subjectRule: TextRule = ({ text }, { roots }) => {
  const found = findSubject(text, roots);
  if (found === undefined) return undefined;
  if (text.constant) return literalReport(text, found);
  const code = subjectCode(found.tokens, (token) => fragmentCode(token, text));
  const base =
    found.root === subjectRootDefault
      ? 'subjects'
      : `createSubjects({ root: ${fragmentCode(found.root, text)} })`;
  const built = code === undefined ? undefined : `${base}${code}`;
  return report(
    text,
    'the subject is put together by hand, so nothing checks its parts: use the builders of createSubjects',
    built !== undefined && found.separator === ':' ? `subjectToStreamKey(${built})` : built,
  );
};

function findSubject(text: Text, roots: readonly string[]): Found | undefined {
  const { form } = text;
  if (/\s/.test(form)) return undefined;
  for (const separator of ['.', ':'] as const) {
    const root = rootOf(text, separator, roots);
    if (root === undefined) continue;
    const tokens = form.slice(root.length + 1).split(separator);
    // Without a token behind the domain, or with an empty one, it is a prefix to compare with.
    if (subjectDomains.has(tokens[0] ?? '') && tokens.length > 1 && tokens.at(-1) !== '') {
      return { separator, root, tokens };
    }
  }
  return undefined;
}

function rootOf(text: Text, separator: string, roots: readonly string[]): string | undefined {
  const written = roots
    .map((root) => root.replaceAll('.', separator))
    .find((root) => text.form.startsWith(`${root}${separator}`));
  if (written !== undefined) return written;
  const first = text.form.split(separator)[0] ?? '';
  // `${root}.tasks.…`: the expression says that it is one.
  return hasHole(first) && wordsOf(text.holes[0] ?? '').includes('root') ? first : undefined;
}

function literalReport(text: Text, found: Found): Report | undefined {
  const { tokens, separator } = found;
  const root = found.root.replaceAll(separator, '.');
  const subject = [root, ...tokens].join('.');
  const isPattern = tokens.some((token) => /[*>]/.test(token));
  // A Redis glob over stream keys has rules of its own.
  if (isPattern && separator === ':') return undefined;
  const checked = isPattern
    ? attempt(validatePattern, [subject])
    : attempt(parseSubject, [subject, { root }]);
  if (checked.ok && (!isPattern || isInHierarchy(tokens))) return undefined;
  const reason = checked.ok
    ? `no subject of the hierarchy can match the pattern '${subject}'`
    : checked.problem.reason;
  const mended = mendTokens(tokens, mendToken);
  const suggestion = mended && quote([found.root, ...mended].join(separator));
  return report(text, reason, suggestion);
}

/** Names of states that an earlier layout of the task streams used as their last token. */
const formerActions: Readonly<Record<string, string>> = {
  pending: 'queue',
  claimed: 'queue',
  started: 'progress',
  completed: 'terminal',
  failed: 'terminal',
  cancelled: 'terminal',
};

/** With no options, the token is a name that somebody chose. */
function mendToken(token: string, options: readonly string[]): string | undefined {
  if (options.length === 0) return guessIdentifier(token);
  const former = formerActions[token];
  if (former !== undefined && options.includes(former)) return former;
  return closest(token, options);
}

function report(text: Text, reason: string, suggestion: string | undefined): Report {
  return { rule: 'subject', start: text.start, end: text.end, reason, suggestion };
}
