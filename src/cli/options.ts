// Options that several commands share, and parsers for option values.

import { durationShape, parseDuration } from '../foundation/duration.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { ExpectedRevision } from '../store/expected-revision.ts';
import { usage } from './command.ts';

export const jsonOption = {
  json: { type: 'boolean', summary: 'prints JSON' },
} as const;

export const confirmBulkOption = {
  yes: { type: 'boolean', summary: 'confirms a bulk operation' },
} as const;

export const eventFilterOptions = {
  category: {
    type: 'string',
    value: 'category',
    summary: 'only streams of this category, such as banking.currency.v1',
  },
  tenant: { type: 'string', value: 'key', summary: 'only events of this tenant' },
  type: {
    type: 'string',
    multiple: true,
    value: 'event-type',
    summary: 'only events of this type (repeatable)',
  },
  'type-prefix': {
    type: 'string',
    multiple: true,
    value: 'text',
    summary: 'only event types with this prefix (repeatable)',
  },
  'stream-prefix': {
    type: 'string',
    multiple: true,
    value: 'text',
    summary: 'only streams with this prefix (repeatable)',
  },
} as const;

/** Undefined if no filter option is given. */
export function eventFilterOf(values: {
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
  readonly type?: readonly string[] | undefined;
  readonly 'type-prefix'?: readonly string[] | undefined;
  readonly 'stream-prefix'?: readonly string[] | undefined;
}): EventFilter | undefined {
  const filter: EventFilter = defined({
    category: values.category,
    tenant: values.tenant,
    types: values.type,
    typePrefixes: values['type-prefix'],
    streamPrefixes: values['stream-prefix'],
  });
  return Object.keys(filter).length === 0 ? undefined : filter;
}

/** Only the fields that have a value, for APIs whose optional fields do not accept `undefined`. */
export function defined<T extends object>(
  fields: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}

export function oneOf<const T extends string>(
  option: string,
  known: readonly T[],
  text: string,
): T {
  const found = known.find((each) => each === text);
  if (found !== undefined) return found;
  const list = new Intl.ListFormat('en', { type: 'disjunction' }).format(known);
  throw usage(`--${option} takes ${list}, not '${text}'`);
}

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

export function durationMs(option: string, text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw usage(`--${option} takes ${durationShape}, not '${text}'`);
}

/** A duration before now, or a date and time, as ISO 8601. */
export function pastTime(option: string, text: string, nowMs: number): string {
  return timeAt(option, text, (ms) => nowMs - ms);
}

/** A duration after now, or a date and time, as ISO 8601. */
export function futureTime(option: string, text: string, nowMs: number): string {
  return timeAt(option, text, (ms) => nowMs + ms);
}

function timeAt(option: string, text: string, shift: (ms: number) => number): string {
  const ms = parseDuration(text);
  // JavaScript would read a number without a unit as a year.
  const dateMs = /^\d+$/.test(text) ? Number.NaN : Date.parse(text);
  const time = new Date(ms === undefined ? dateMs : shift(ms));
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw usage(`--${option} takes ${durationShape}, or a date and time, not '${text}'`);
}

/** Values of the form `name=value`. */
export function pairs(option: string, texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw usage(`--${option} takes name=value, not '${text}'`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
