// The cause of a failure: its message without the parts that differ from one failure to the next. Pure.

import { hash } from 'node:crypto';

export interface FailureCause {
  /** The message with placeholders. */
  readonly title: string;
  /** Equal for failures of one cause. */
  readonly fingerprint: string;
}

const titleCharsMax = 300;

/** In this order: a UUID contains numbers. */
const placeholders: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '‹id›'],
  [/\b\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?/g, '‹time›'],
  [/'[^'\n]{1,200}'|"[^"\n]{1,200}"|“[^”\n]{1,200}”/g, '‹text›'],
  [/\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '‹id›'],
  [/\b\d+(?:\.\d+)?/g, '‹n›'],
];

/** Statuses of HTTP are part of the cause; all other numbers are not. */
const statusShape = /\b(HTTP|status)( +)([1-5]\d\d)\b/gi;

export function causeOf({
  source,
  where,
  error,
}: {
  readonly source: string;
  readonly where: string;
  readonly error: string;
}): FailureCause {
  const [first = ''] = error.slice(0, 4_000).split('\n', 1);
  const statuses: string[] = [];
  let title = first.replaceAll(statusShape, (_all, word: string, space: string, code: string) => {
    statuses.push(code);
    return `${word}${space}‹status›`;
  });
  for (const [shape, placeholder] of placeholders) title = title.replaceAll(shape, placeholder);
  title = title.replaceAll('‹status›', () => statuses.shift() ?? '').slice(0, titleCharsMax);
  const fingerprint = hash('sha256', `${source}\n${where}\n${title}`, 'hex').slice(0, 12);
  return { title: title === '' ? 'unknown error' : title, fingerprint };
}
