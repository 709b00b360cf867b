// The cause of a failure, stored with it: the error's name, code and stack, and a fingerprint that is equal for all
// failures of one cause. Pure.

import { hash } from 'node:crypto';
import { cleanText } from './error-text.ts';

/** The parts of a thrown error that do not quote data. */
export interface ErrorFacts {
  readonly name?: string | undefined;
  readonly code?: string | undefined;
  /** The frames without the messages, because a message may quote personal data. */
  readonly stack?: string | undefined;
}

export interface FailureCause extends ErrorFacts {
  /** 12 hexadecimal digits. */
  readonly fingerprint: string;
}

export const causeLimits = { titleCharsMax: 300, nameCharsMax: 100, stackCharsMax: 2_000 } as const;

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

/** The first line of the message, without the parts that differ from one failure to the next. */
export function failureTitle(error: string): string {
  const [first = ''] = error.slice(0, 4_000).split('\n', 1);
  const statuses: string[] = [];
  let title = first.replaceAll(statusShape, (_all, word: string, space: string, code: string) => {
    statuses.push(code);
    return `${word}${space}‹status›`;
  });
  for (const [shape, placeholder] of placeholders) title = title.replaceAll(shape, placeholder);
  title = title.replaceAll('‹status›', () => statuses.shift() ?? '');
  return title.slice(0, causeLimits.titleCharsMax) || 'unknown error';
}

/** `where`: the subscription, destination or task type. */
export function failureCause(
  failure: { readonly source: string; readonly where: string; readonly error: string },
  facts: ErrorFacts = {},
): FailureCause {
  const { source, where, error } = failure;
  const { name = '', code = '', stack = '' } = facts;
  const parts = [source, where, name, code, failureTitle(error), placeOf(stack)];
  return { ...facts, fingerprint: hash('sha256', parts.join('\n'), 'hex').slice(0, 12) };
}

export function errorFacts(error: unknown): ErrorFacts {
  if (!(error instanceof Error)) return {};
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const stack = cleanText(framesOf(error).join('\n'), causeLimits.stackCharsMax);
  return {
    name: cleanText(error.name, causeLimits.nameCharsMax),
    ...(code === undefined ? {} : { code: cleanText(code, causeLimits.nameCharsMax) }),
    ...(stack === '' ? {} : { stack }),
  };
}

const frameShape = /^ {4}at .*(?::\d+:\d+\)?|\(<anonymous>\)|\(native\))$/;

/** The frames of the error and of its causes; causes can be circular. */
function framesOf(error: unknown, depth = 0): readonly string[] {
  if (!(error instanceof Error) || depth === 3) return [];
  const { stack = '', message } = error;
  const from = message === '' ? -1 : stack.indexOf(message);
  const frames = (from < 0 ? stack : stack.slice(from + message.length))
    .split('\n')
    .filter((line) => frameShape.test(line));
  const causes = framesOf(error.cause, depth + 1);
  return causes.length === 0 ? frames : [...frames, 'caused by', ...causes];
}

/** The function and the file of the first frame outside of Node.js and packages; lines change with every release. */
function placeOf(stack: string): string {
  const own = stack
    .split('\n')
    .find((line) => frameShape.test(line) && !/node:|[\\/]node_modules[\\/]/.test(line));
  const [, name = '', file = ''] =
    /^ {4}at (?:async )?(?:(.*) \()?.*?([^\\/(]*?):\d+:\d+\)?$/.exec(own ?? '') ?? [];
  return `${name} ${file}`;
}
