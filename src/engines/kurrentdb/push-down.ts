// The part of a filter that the server evaluates: event types or stream names, by prefixes or by one pattern. The
// server gets the most selective part; the rest of the filter is applied to its results.

import type { TailRow } from '../../store/append-tail.ts';
import { matchesRow, type EventFilter } from '../../store/event-filter.ts';
import type { RowFilter } from '../../store/store-engine.ts';
import type { ClientRecord } from './client.ts';
import { isKeyStream } from '../../store/erasure.ts';

type Expression = { readonly prefixes: string[] } | { readonly regex: string };

/** A filter in the format of the client. */
type ServerFilter = Expression & {
  readonly filterOn: 'eventType' | 'streamName';
  readonly checkpointInterval: number;
};

export interface PushedDown {
  /** The filter for the server; undefined if the server returns all events. */
  readonly server: ServerFilter | undefined;
  /** Whether the results of the server need no further filtering. */
  readonly isExact: boolean;
}

/** The most prefixes: the server tests every prefix for every event. */
const prefixesMax = 64;

const withoutSystem = onType({ regex: '^[^$].*' });

export function pushDown(filter: RowFilter, names: 'strict' | 'open'): PushedDown {
  const given = filter.given ?? {};
  // Types are more selective than categories: most types belong to one category that has several types.
  const part = byTypes(given) ?? byStream(given, names) ?? byTypeText(given);
  const others = given.system === true ? undefined : withoutSystem;
  return { server: part ?? others, isExact: isEmpty(given) };
}

/** Whether an event matches the whole filter; the keys of data subjects never do. */
export function isWanted(filter: RowFilter, row: TailRow): boolean {
  return !isKeyStream(row.stream) && matchesRow(filter, row, row.tenant);
}

/** Whether an event may match, by its names: most events are rejected without being decoded. */
export function mayMatch(filter: RowFilter, { streamId, type }: ClientRecord): boolean {
  const row = { stream: streamId, type };
  return !isKeyStream(streamId) && matchesRow({ ...filter, tenant: undefined }, row, '');
}

function byStream(
  { category, tenant, streamPrefixes, streamPattern }: EventFilter,
  names: 'strict' | 'open',
): ServerFilter | undefined {
  // Only in strict stores are the events of a tenant always in streams of that tenant.
  const owner = names === 'strict' ? tenant : undefined;
  if (category !== undefined && category !== '') {
    return onStream({ prefixes: [owner === undefined ? `${category}-` : `${category}-${owner}-`] });
  }
  if (arePrefixes(streamPrefixes)) return onStream({ prefixes: [...streamPrefixes] });
  if (isPlainPattern(streamPattern)) return onStream({ regex: streamPattern });
  // A stream without a hyphen belongs to no tenant, so it is included.
  if (owner !== undefined && /^[a-z0-9-]+$/.test(owner)) {
    return onStream({ regex: `^[^-]*(-${owner}-|$)` });
  }
  return undefined;
}

function byTypes({ types }: EventFilter): ServerFilter | undefined {
  return arePrefixes(types) ? onType({ prefixes: [...types] }) : undefined;
}

function byTypeText({ typePrefixes, typePattern }: EventFilter): ServerFilter | undefined {
  if (arePrefixes(typePrefixes)) return onType({ prefixes: [...typePrefixes] });
  return isPlainPattern(typePattern) ? onType({ regex: typePattern }) : undefined;
}

export function onStream(expression: Expression): ServerFilter {
  return { filterOn: 'streamName', checkpointInterval: 1, ...expression };
}

function onType(expression: Expression): ServerFilter {
  return { filterOn: 'eventType', checkpointInterval: 1, ...expression };
}

/** Whether the server interprets the prefixes alike: an empty list and an empty prefix have another meaning there. */
function arePrefixes(prefixes: readonly string[] | undefined): prefixes is readonly string[] {
  if (prefixes === undefined || prefixes.length === 0 || prefixes.length > prefixesMax)
    return false;
  return prefixes.every((prefix) => prefix !== '');
}

/**
 * Whether .NET and RE2 interpret the pattern alike: no groups with options, and only escaped punctuation.
 */
function isPlainPattern(pattern: string | undefined): pattern is string {
  return pattern !== undefined && pattern !== '' && !/\(\?|\\[a-zA-Z0-9]|\[:/.test(pattern);
}

function isEmpty({ system: _system, ...parts }: EventFilter): boolean {
  return Object.values(parts).every((part) => part === undefined);
}
