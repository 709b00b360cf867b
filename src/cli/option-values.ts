// Values of options: text from the command line to what the commands work with.

import type { ExpectedRevision } from '../store/expected-revision.ts';
import { usage } from './command.ts';

export function wholeNumber(option: string, text: string): number;
export function wholeNumber(option: string, text: string | undefined): number | undefined;
export function wholeNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw usage(`--${option} takes a whole number, not '${text}'`);
}

export function expectedRevision(text: string | undefined): ExpectedRevision | undefined {
  if (text === undefined || text === 'any' || text === 'none' || text === 'exists') return text;
  if (/^\d+$/.test(text)) return wholeNumber('expected', text);
  throw usage(`--expected takes any, none, exists or a revision, not '${text}'`);
}

const unitSeconds: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
};

/** `90`, `90s`, `15m`, `12h`, `30d`, `2w`. */
export function durationSeconds(option: string, text: string): number {
  const match = /^(\d+)([smhdw]?)$/.exec(text);
  const seconds = Number(match?.[1]) * (unitSeconds[match?.[2] ?? ''] ?? 1);
  if (match !== null && Number.isSafeInteger(seconds)) return seconds;
  throw usage(`--${option} takes seconds or a duration such as 15m, 12h or 30d, not '${text}'`);
}

/** `name=value`, any number of times. */
export function pairs(option: string, texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw usage(`--${option} takes name=value, not '${text}'`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

/** A duration from now on, or a date; as ISO 8601. */
export function timeAhead(option: string, text: string, nowMs: number): string {
  const isDuration = /^\d+[smhdw]?$/.test(text);
  const atMs = isDuration ? nowMs + durationSeconds(option, text) * 1_000 : Date.parse(text);
  if (Math.abs(atMs) <= 8.64e15) return new Date(atMs).toISOString();
  throw usage(`--${option} takes a duration such as 12h or 30d, or a date, not '${text}'`);
}
