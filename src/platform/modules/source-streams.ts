// The streams that a handler of a module reads: those of its bounded context, unless its definition names others.

import type { AnyAggregate } from './platform-module.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { Projection } from '../../projections/projection.ts';
import {
  compileFilter,
  namesStreams,
  namesTypes,
  type EventFilter,
} from '../../store/event-filter.ts';
import { isEventType, parseEventType } from '../../contracts/event-type.ts';
import { camelCase, checkIdentifier } from '../../contracts/identifier.ts';
import { buildCategory } from '../../contracts/stream-name.ts';

export type SourceAggregate = Pick<AnyAggregate, 'bc' | 'category' | 'events' | 'name' | 'version'>;

export interface SourceScope {
  /** The name of the handler, for errors. */
  readonly name: string;
  /** The aggregates of its module. */
  readonly own: readonly SourceAggregate[];
  /** The aggregates of all modules. */
  readonly all: readonly SourceAggregate[];
}

/**
 * Restricts the filter of a reactor, a saga or an outbox projector to the categories of the aggregates that declare its
 * event types: an equal event type of another bounded context is another event. Aggregates of the module come first,
 * then the one aggregate of the other modules. A filter that names streams is returned as it is.
 */
export function sourceFilter(filter: EventFilter, { name, own, all }: SourceScope): EventFilter {
  if (namesStreams(filter)) return filter;
  const isWanted = compileFilter(typesOf(filter)).type ?? (() => true);
  const declares = (type: string) => (each: SourceAggregate) =>
    each.events.some((event) => event.type === type);
  if (!namesTypes(filter)) {
    // Every event of the module; without aggregates, a module reads the events of all.
    return own.length === 0 ? filter : { ...filter, streamPrefixes: prefixesOf(own) };
  }
  const types = filter.types ?? [
    ...new Set(all.flatMap(({ events }) => events.map(({ type }) => type).filter(isWanted))),
  ];
  const found = types.filter(isWanted).map((type) => {
    const inModule = own.filter(declares(type));
    const sources = inModule.length > 0 ? inModule : all.filter(declares(type));
    return { type, sources, isOwn: inModule.length > 0 };
  });
  // A prefix that fits events of the module means these.
  const ownOnly = filter.types === undefined && found.some(({ isOwn }) => isOwn);
  const wanted = ownOnly ? found.filter(({ isOwn }) => isOwn) : found;
  if (wanted.length === 0) throw undeclared(name, 'these event types');
  for (const { type, sources, isOwn } of wanted) {
    if (sources.length === 0) throw undeclared(name, `'${type}'`);
    if (!isOwn && sources.length > 1) throw ambiguous(name, type, sources);
  }
  return { ...filter, streamPrefixes: prefixesOf(wanted.flatMap(({ sources }) => sources)) };
}

/**
 * Restricts the filter of a handler outside of a platform, where no aggregates are known: an event type of a bounded
 * context is an event of its category, so `payment.completed.v1` of `paymenthub` is read from `paymenthub.payment.v1`.
 * A filter that names streams is returned as it is.
 */
export function contextFilter(
  filter: EventFilter,
  { name, bc }: { readonly name: string; readonly bc: string | undefined },
): EventFilter {
  if (namesStreams(filter)) return filter;
  if (bc === undefined) {
    if (!namesTypes(filter)) return filter;
    throw contextless(name);
  }
  const { types = [], typePrefixes = [] } = filter;
  const prefixes = [...types, ...typePrefixes].map((type) => contextPrefix(bc, type));
  const streams = prefixes.length === 0 ? [contextPrefix(bc, '')] : prefixes;
  return { ...filter, streamPrefixes: [...new Set(streams)].toSorted() };
}

/** The streams of a bounded context that contain events of a type, or of a prefix of types. */
export function contextPrefix(bc: string, type: string): string {
  checkIdentifier('bounded context', bc);
  if (isEventType(type)) {
    const { agg, version } = parseEventType(type);
    return `${camelCase(bc)}.${camelCase(agg)}.v${version}-`;
  }
  const at = type.indexOf('.');
  return `${camelCase(bc)}.${at === -1 ? '' : `${camelCase(type.slice(0, at))}.v`}`;
}

export function contextless(name: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `${name} names event types, which other bounded contexts may have, too: set bc, such as 'paymenthub', or name the streams by a category, such as 'paymenthub.payment.v1'`,
    { details: { field: 'bc', name } },
  );
}

/**
 * A projection reads the category of its read model by default. If no aggregate has that category, but the platform has
 * the aggregate in another version or under another name, the projection would stay empty.
 */
export function checkProjectionSource(
  { name, filter, readModel }: Pick<Projection, 'filter' | 'name' | 'readModel'>,
  all: readonly SourceAggregate[],
): void {
  const { category, types = [] } = filter;
  if (category === undefined || all.some((each) => each.category === category)) return;
  const { bc, aggregate, version } = readModel;
  const isDefault = category === buildCategory<string, string>(bc, aggregate, version);
  const versionless = withoutVersion(category);
  const near =
    all.find((each) => withoutVersion(each.category) === versionless) ??
    (isDefault
      ? all.find(({ events }) => events.some(({ type }) => types.includes(type)))
      : undefined);
  if (near === undefined) return;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${name} reads the category '${category}', which no aggregate of the platform has: add filter: { category: '${near.category}' }`,
    { details: { field: 'projections', name, category, nearest: near.category } },
  );
}

function typesOf({ types, typePrefixes, typePattern }: EventFilter): EventFilter {
  return { types, typePrefixes, typePattern };
}

function prefixesOf(sources: readonly SourceAggregate[]): readonly string[] {
  return [...new Set(sources.map(({ category }) => `${category}-`))].toSorted();
}

function withoutVersion(category: string): string {
  return category.replace(/\.v\d+$/, '');
}

function undeclared(name: string, what: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `${name}: no aggregate of the platform declares ${what}: name the streams, as in filter: { category: 'banking.account.v1' }`,
    { details: { field: 'filter', name } },
  );
}

function ambiguous(name: string, type: string, sources: readonly SourceAggregate[]): MillraceError {
  const categories = sources.map(({ category }) => category);
  return new MillraceError(
    'CONFIG_INVALID',
    `${name}: '${type}' is an event of ${categories.join(' and ')}: name one, as in filter: { category: '${categories[0]}' }`,
    { details: { field: 'filter', name, type, categories } },
  );
}
