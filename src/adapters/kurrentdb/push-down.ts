// What a server can filter by itself: event types or stream names, by prefixes or by one pattern. It
// is given the part that leaves the least; the rest of the filter is applied to what comes back.

import type { EventFilter } from '../../store/event-filter.ts';
import { categoryOf } from '../../store/recorded-event.ts';
import type { RowFilter } from '../../store/store-engine.ts';

type Expression = { readonly prefixes: string[] } | { readonly regex: string };

/** In the client's words. */
export type ServerFilter = Expression & {
  readonly filterOn: 'eventType' | 'streamName';
  readonly checkpointInterval: number;
};

export interface PushedDown {
  /** Undefined: the server is asked for everything. */
  readonly server: ServerFilter | undefined;
  /** The server's answer needs no second look. */
  readonly isExact: boolean;
}

/** A server scans with each prefix in turn. */
const prefixesMax = 64;

const withoutSystem = onType({ regex: '^[^$].*' });

export function pushDown(filter: RowFilter, names: 'strict' | 'open'): PushedDown {
  const given = filter.given ?? {};
  // A type mostly belongs to one category, and is one of several there.
  const server = byTypes(given) ?? byStream(given, names) ?? byTypeText(given);
  if (server !== undefined) return { server, isExact: false };
  if (given.system === true) return { server: undefined, isExact: isEmpty(given) };
  return { server: withoutSystem, isExact: isEmpty(given) };
}

/** Whether an event is wanted, all parts of the filter considered. */
export function isWanted(
  filter: RowFilter,
  {
    row,
    tenant,
  }: { readonly row: { readonly type: string; readonly stream: string }; readonly tenant: string },
): boolean {
  return (
    filter.type?.(row.type) !== false &&
    (filter.tenant === undefined || filter.tenant === tenant) &&
    (filter.category === undefined || filter.category === categoryOf(row.stream)) &&
    filter.stream?.(row.stream) !== false
  );
}

function byStream(
  { category, tenant, streamPrefixes, streamPattern }: EventFilter,
  names: 'strict' | 'open',
): ServerFilter | undefined {
  // Only in strict stores is a tenant's event always in a stream of the tenant's.
  const owner = names === 'strict' ? tenant : undefined;
  if (category !== undefined && category !== '') {
    return onStream({ prefixes: [owner === undefined ? `${category}-` : `${category}-${owner}-`] });
  }
  if (arePrefixes(streamPrefixes)) return onStream({ prefixes: [...streamPrefixes] });
  if (isPlainPattern(streamPattern)) return onStream({ regex: streamPattern });
  // A stream without a hyphen belongs to nobody in particular.
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

function onStream(expression: Expression): ServerFilter {
  return { filterOn: 'streamName', checkpointInterval: 1, ...expression };
}

function onType(expression: Expression): ServerFilter {
  return { filterOn: 'eventType', checkpointInterval: 1, ...expression };
}

/** No prefix at all, or an empty one, would mean something else to the server. */
function arePrefixes(prefixes: readonly string[] | undefined): prefixes is readonly string[] {
  if (prefixes === undefined || prefixes.length === 0 || prefixes.length > prefixesMax)
    return false;
  return prefixes.every((prefix) => prefix !== '');
}

/**
 * Whether .NET and RE2 read the pattern alike: no groups with options and no escapes but those of
 * punctuation.
 */
function isPlainPattern(pattern: string | undefined): pattern is string {
  return pattern !== undefined && pattern !== '' && !/\(\?|\\[a-zA-Z0-9]|\[:/.test(pattern);
}

function isEmpty({ system: _system, ...parts }: EventFilter): boolean {
  return Object.values(parts).every((part) => part === undefined);
}
