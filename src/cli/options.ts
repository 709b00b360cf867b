// Options that several commands share, and parsers for option values.

import { durationShape, parseDuration } from '../foundation/duration.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { ExpectedRevision } from '../store/expected-revision.ts';
import { usage, type Values } from './command.ts';

/** `--name <value>`. */
export function option(value: string, summary: string) {
  return { type: 'string', value, summary } as const;
}

/** `--name <value> --name <value>`. */
export function repeatable(value: string, summary: string) {
  return { type: 'string', multiple: true, value, summary } as const;
}

/** `--name`. */
export function flag(summary: string) {
  return { type: 'boolean', summary } as const;
}

export const tenantOption = { tenant: option('key', 'only of this tenant') };

export const sinceOption = {
  since: option('time', 'only since 12h ago, 30d ago, or a date and time'),
};

export const configOption = {
  config: option('file', 'configuration file (default: ./millrace.config.ts)'),
};

const pageSizeDefault = 50;

export const pageSizeOption = { limit: option('N', `page size (default: ${pageSizeDefault})`) };

export function pageSizeOf(values: Values<typeof pageSizeOption>): number {
  return nonNegativeInteger('limit', values.limit) ?? pageSizeDefault;
}

/** Options of a command that changes items by their ids, by a filter, or all of them. */
export function bulkOptions(all: string) {
  return { all: flag(all), yes: flag('confirms a bulk operation') };
}

/** The ids or the filter of a bulk command. Everything but ids must be confirmed. */
export function bulkFilter<Filter extends object>(
  {
    name,
    values,
    positionals: ids,
  }: {
    readonly name: string;
    readonly values: Values<ReturnType<typeof bulkOptions>>;
    readonly positionals: readonly string[];
  },
  filter: Filter,
  { example, warning }: { readonly example: string; readonly warning: string },
): Filter | { readonly ids: readonly string[] } {
  const ways = [ids.length > 0, values.all === true, Object.keys(filter).length > 0];
  if (ways.filter(Boolean).length !== 1) {
    throw usage(`${name} needs ids, a filter (such as ${example}), or --all`);
  }
  if (ids.length > 0) return { ids };
  checkConfirmed(values, warning);
  return filter;
}

export function checkConfirmed(
  { yes }: { readonly yes?: boolean | undefined },
  warning: string,
): void {
  if (yes !== true) throw usage(`${warning}: pass --yes to confirm`);
}

export const eventFilterOptions = {
  category: option('category', 'only streams of this category, such as banking.currency.v1'),
  tenant: option('key', 'only events of this tenant'),
  type: repeatable('event-type', 'only events of this type (repeatable)'),
  'type-prefix': repeatable('text', 'only event types with this prefix (repeatable)'),
  'stream-prefix': repeatable('text', 'only streams with this prefix (repeatable)'),
};

/** Returns undefined if no filter option is given. */
export function eventFilterOf(values: Values<typeof eventFilterOptions>): EventFilter | undefined {
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

/** Parses the value of an option; returns undefined if the option is not given. */
interface Parser<T> {
  (name: string, text: string): T;
  (name: string, text: string | undefined): T | undefined;
}

/** Creates the parser of an option; `read` returns undefined for an invalid value. */
function parser<T>(expected: string, read: (text: string) => T | undefined): Parser<T> {
  const parse = (name: string, text: string | undefined): T | undefined => {
    if (text === undefined) return undefined;
    const value = read(text);
    if (value === undefined) throw usage(`--${name} takes ${expected}, not '${text}'`);
    return value;
  };
  return parse as Parser<T>;
}

export function oneOf<const T extends string>(known: readonly T[]): Parser<T> {
  const list = new Intl.ListFormat('en', { type: 'disjunction' }).format(known);
  return parser(list, (text) => known.find((each) => each === text));
}

export const nonNegativeInteger = parser('a non-negative integer', (text) => {
  const value = Number(text);
  return /^\d+$/.test(text) && Number.isSafeInteger(value) ? value : undefined;
});

const revision = parser<ExpectedRevision>('any, none, exists or a revision', (text) => {
  if (text === 'any' || text === 'none' || text === 'exists') return text;
  return /^\d+$/.test(text) ? Number(text) : undefined;
});

export function expectedRevision(text: string | undefined): ExpectedRevision | undefined {
  return revision('expected', text);
}

export const durationMs = parser(durationShape, parseDuration);

/** Parses a duration before now, or a date and time. */
export const pastTime = parser(`${durationShape}, or a date and time`, (text) =>
  timeAt(text, (ms) => Date.now() - ms),
);

/** Parses a duration after now, or a date and time. */
export const futureTime = parser(`${durationShape}, or a date and time`, (text) =>
  timeAt(text, (ms) => Date.now() + ms),
);

function timeAt(text: string, shift: (ms: number) => number): Date | undefined {
  const ms = parseDuration(text);
  // JavaScript would read a number without a unit as a year.
  const dateMs = /^\d+$/.test(text) ? Number.NaN : Date.parse(text);
  const time = new Date(ms === undefined ? dateMs : shift(ms));
  return Number.isNaN(time.getTime()) ? undefined : time;
}

const pair = parser('name=value', (text): readonly [string, string] | undefined => {
  const at = text.indexOf('=');
  return at < 1 ? undefined : [text.slice(0, at), text.slice(at + 1)];
});

export function pairs(
  name: string,
  texts: readonly string[] | undefined,
): Readonly<Record<string, string>> | undefined {
  return texts && Object.fromEntries(texts.map((text) => pair(name, text)));
}
