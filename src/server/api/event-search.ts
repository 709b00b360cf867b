// Searches events, newest first, by time, flow and payload value: bounded in events, bytes and time, and says how far it looked.

import { Type } from '../../contracts/type.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { jsonDepthMax, jsonText } from '../../foundation/parse-json.ts';
import { createSecretHider, hiderFor } from '../../platform/modules/hide-secrets.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import { compileFilter, matchesRow } from '../../store/event-filter.ts';
import type { EventReader, EventStore } from '../../store/event-store.ts';
import { startPosition, type Position } from '../../store/position.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import {
  checkStreamAccess,
  cursorInvalid,
  positionOfCursor,
  routesOf,
  type ApiPlatform,
} from './api-context.ts';
import { checkPayloadSearch } from '../http/masked-fields.ts';
import { textBytes } from '../http/list-page.ts';
import { filterFor, type EventQuery } from './follow.ts';
import { filterQuery, recordedEvent } from './stream-routes.ts';

/** Of one request: a page of the store has at most 2 MiB. */
const searchLimits = {
  eventsMax: 20_000,
  pagesMax: 32,
  timeMs: 2_000,
  resultsMax: 200,
  resultBytesMax: 2_097_152,
  conditionsMax: 5,
} as const;
const pageSize = 1_000;
/** Entries of the index of traces; each is one read. */
const indexedMax = 1_000;

const { get: read } = routesOf('streams', 'read');
const time = Type.Optional(Type.String({ description: 'ISO 8601.', maxLength: 40 }));

const found = Type.Object({
  items: Type.Array(recordedEvent, { description: 'Newest first.' }),
  cursor: Type.Optional(Type.String({ description: 'Continues the search; absent at its end.' })),
  searched: Type.Object({
    events: Type.Integer({ description: 'How many events were read.' }),
    back: Type.Optional(Type.String({ description: 'When the oldest of them was recorded.' })),
    by: Type.Enum(['events', 'stream', 'trace-index'], {
      description: 'trace-index: only events of its retention, 30 days by default.',
    }),
    complete: Type.Boolean({
      description: 'False: the latest events may be missing, because the index is behind.',
    }),
  }),
});

interface SearchQuery extends EventQuery {
  readonly stream?: string | undefined;
  readonly from?: string | undefined;
  readonly until?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly payload?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

type SearchRequest = Pick<
  ApiRequest<unknown, SearchQuery>,
  'headers' | 'principal' | 'query' | 'signal'
>;

type SearchPlatform = Pick<ApiPlatform, 'clock' | 'ownerOf' | 'traces'> & {
  readonly engines: {
    readonly store: Pick<EventStore, 'positionBefore' | 'readAll' | 'readStream'>;
  };
};

export function eventSearchRoutes(platform: ApiPlatform): readonly Route[] {
  const hider = createSecretHider(platform.modules);
  return [
    route({
      ...read,
      path: '/api/v1/events/search',
      summary: 'Searches events by time, flow and payload value',
      description: `Newest first. One request reads at most ${searchLimits.eventsMax} events and ends after ${searchLimits.timeMs / 1_000} s; \`searched\` says how far it looked, and \`cursor\` continues.`,
      query: Type.Object({
        ...filterQuery,
        stream: Type.Optional(Type.String({ maxLength: 400 })),
        from: time,
        until: time,
        correlationId: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })),
        payload: Type.Optional(
          Type.Array(Type.String({ maxLength: 600 }), {
            maxItems: searchLimits.conditionsMax,
            description: '`path=value`, such as `customer.id=c-7`; all must match.',
          }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: searchLimits.resultsMax })),
        cursor: Type.Optional(Type.String({ description: 'The cursor of the previous page.' })),
      }),
      responses: { 200: { description: 'A page of events', schema: found } },
      async handle(request) {
        const { principal, query } = request;
        if ((query.payload ?? []).length > 0) checkPayloadSearch(principal, 'payload');
        const hide = hiderFor(principal, hider).event;
        return request.memory.load(async () => ({
          json: await searchEvents(platform, request, hide),
        }));
      },
    }),
  ];
}

/** Returns JSON. */
export async function searchEvents(
  platform: SearchPlatform,
  request: SearchRequest,
  hide: (event: RecordedEvent) => RecordedEvent,
  limits: { readonly eventsMax: number; readonly timeMs: number } = searchLimits,
): Promise<string> {
  const { query } = request;
  const { limit = 100, correlationId } = query;
  const filter = filterFor(request);
  const rows = compileFilter(filter);
  const conditions = (query.payload ?? []).map(parseCondition);
  const fromMs = timeFrom('from', query.from);
  const untilMs = timeFrom('until', query.until);
  const endMs = platform.clock.now() + limits.timeMs;
  const source = await sourceOf(platform, request, { tenant: filter.tenant, untilMs });

  const items: string[] = [];
  let bytes = 0;
  let events = 0;
  let pages = 0;
  let last: RecordedEvent | undefined;
  let isCut = false;
  reading: for await (const page of source.pages) {
    for (const event of page) {
      if (fromMs !== undefined && Date.parse(event.recordedAt) < fromMs) break reading;
      events += 1;
      last = event;
      const isMatch =
        matchesRow(rows, event, event.tenant) &&
        (untilMs === undefined || Date.parse(event.recordedAt) < untilMs) &&
        (correlationId === undefined || event.correlationId === correlationId);
      // Hidden values must not be found by guessing them.
      const shown = isMatch ? hide(event) : undefined;
      if (shown !== undefined && conditions.every((holds) => holds(shown.payload))) {
        const json = jsonText(shown);
        items.push(json);
        bytes += textBytes(json);
      }
      isCut =
        items.length >= limit || bytes >= searchLimits.resultBytesMax || events >= limits.eventsMax;
      if (isCut) break reading;
    }
    pages += 1;
    isCut = pages >= source.pagesMax || platform.clock.now() >= endMs;
    if (isCut) break;
  }
  const cursor = isCut && last !== undefined ? source.cursorAfter(last) : undefined;
  const { by, complete } = source;
  const searched = JSON.stringify({ events, back: last?.recordedAt, by, complete });
  const next = cursor === undefined ? '' : `"cursor":${JSON.stringify(cursor)},`;
  return `{"items":[${items.join(',')}],${next}"searched":${searched}}`;
}

interface Source {
  readonly by: 'events' | 'stream' | 'trace-index';
  readonly complete: boolean;
  readonly pagesMax: number;
  /** Newest first. */
  readonly pages: AsyncIterable<readonly RecordedEvent[]>;
  cursorAfter(event: RecordedEvent): string | undefined;
}

/** One stream, the events of a flow by the index of traces, or all events. */
async function sourceOf(
  platform: SearchPlatform,
  request: SearchRequest,
  {
    tenant,
    untilMs,
  }: { readonly tenant: string | undefined; readonly untilMs: number | undefined },
): Promise<Source> {
  const { store } = platform.engines;
  const { signal } = request;
  const { stream, correlationId, cursor } = request.query;
  const options = { direction: 'backwards', pageSize, signal } as const;
  if (stream !== undefined) {
    await checkStreamAccess(platform, stream, request);
    const from = cursor === undefined ? undefined : revisionOf(cursor);
    return {
      by: 'stream',
      complete: true,
      pagesMax: searchLimits.pagesMax,
      pages: store.readStream(stream, { ...options, from }).pages(),
      cursorAfter: ({ revision }) => (revision === 0 ? undefined : String(revision - 1)),
    };
  }
  const after = cursor === undefined ? undefined : positionOfCursor(cursor);
  const cursorAfter = ({ position }: RecordedEvent): string => position;
  if (correlationId !== undefined) {
    const flow = await platform.traces
      .entries(correlationId, { tenant, signal, limit: indexedMax })
      .catch((error: unknown) => {
        if (hasCode(error, 'NOT_SUPPORTED')) return undefined;
        throw error;
      });
    if (flow !== undefined) {
      const older = flow.entries
        .filter(({ position }) => after === undefined || position < after)
        .toReversed();
      const single = (entry: (typeof older)[number]): EventReader =>
        store.readStream(entry.stream, { from: entry.revision, limit: 1, signal });
      return {
        by: 'trace-index',
        complete: flow.complete,
        pagesMax: indexedMax,
        pages: eachOf(older.map((entry) => () => single(entry))),
        cursorAfter,
      };
    }
  }
  // The time of an event may be slightly before that of an earlier one, so the start has no exact position.
  const upTo =
    after === undefined && untilMs !== undefined ? await store.positionBefore(untilMs) : undefined;
  const start: { readonly after?: Position | undefined; readonly upTo?: Position | undefined } =
    upTo === undefined ? { after } : { upTo };
  const isEmpty = upTo === startPosition;
  const filter = { tenant };
  return {
    by: 'events',
    complete: true,
    pagesMax: searchLimits.pagesMax,
    pages: isEmpty ? eachOf([]) : store.readAll({ ...options, ...start, filter }).pages(),
    cursorAfter,
  };
}

/** One page for each reader; events of deleted streams are omitted. */
async function* eachOf(
  readers: readonly (() => EventReader)[],
): AsyncGenerator<readonly RecordedEvent[]> {
  for (const open of readers) {
    try {
      const page = await open().toArray();
      if (page.length > 0) yield page;
    } catch (error) {
      if (!hasCode(error, 'STREAM_DELETED')) throw error;
    }
  }
}

function timeFrom(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw invalid(field, `'${text}' is not a time; use ISO 8601, such as 2026-11-18T12:00:00Z`);
}

function revisionOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw cursorInvalid();
}

/**
 * `path=value`: keys are separated by dots, an index or any item of a list matches, and numbers, booleans and null are
 * compared as text.
 */
export function parseCondition(text: string): (payload: unknown) => boolean {
  const at = text.indexOf('=');
  const path = text.slice(0, Math.max(0, at)).trim();
  if (path === '' || path.split('.').length > 20) {
    throw invalid('payload', `'${text.slice(0, 40)}' is not of the form path=value`);
  }
  const value = text.slice(at + 1).trim();
  return (payload) => holdsAt(payload, path.split('.'), value);
}

/** Values that are nested deeper than HTTP accepts are not searched. */
function holdsAt(value: unknown, path: readonly string[], wanted: string, depth = 0): boolean {
  const [key, ...rest] = path;
  if (key === undefined) {
    return Array.isArray(value)
      ? value.some((item) => isText(item, wanted))
      : isText(value, wanted);
  }
  if (typeof value !== 'object' || value === null || depth === jsonDepthMax) return false;
  const own = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
  if (own !== undefined && holdsAt(own, rest, wanted, depth + 1)) return true;
  return Array.isArray(value) && value.some((item) => holdsAt(item, path, wanted, depth + 1));
}

function isText(value: unknown, wanted: string): boolean {
  return (typeof value !== 'object' || value === null) && String(value) === wanted;
}

function invalid(field: string, reason: string): MillraceError {
  return new MillraceError('REQUEST_INVALID', `${field} ${reason}`, { details: { field } });
}
