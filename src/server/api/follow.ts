// Live subscriptions over server-sent events and WebSockets: the filter of a caller and the start position.

import { MillraceError } from '../../foundation/error.ts';
import { jsonText } from '../../foundation/parse-json.ts';
import type { EventFilter } from '../../store/event-filter.ts';
import type { FeedItem } from '../../store/event-store.ts';
import { parsePosition } from '../../store/position.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import {
  createSecretHider,
  hiderFor,
  type SecretHider,
} from '../../platform/modules/hide-secrets.ts';
import type { ApiRequest, ReaderMemory } from '../../platform/modules/route.ts';
import type { SentEvent } from '../../platform/modules/server-sent-events.ts';
import { textBytes } from '../http/list-page.ts';
import { tenantWithin, checkStreamAccess, type ApiPlatform } from './api-context.ts';

type Caller = Pick<ApiRequest, 'headers' | 'memory' | 'principal' | 'signal'>;

/** Small, because a client that does not read has a page in memory. */
const pageBytes = 131_072;

export interface EventQuery {
  readonly types?: readonly string[] | undefined;
  readonly typePrefix?: string | undefined;
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
}

/** Follows all streams: `after` is a position or `end`. Invalid input throws before the first event. */
export function followEvents(
  { engines, modules }: ApiPlatform,
  { principal, signal, memory }: Caller,
  { after, ...query }: EventQuery & { readonly after?: string | undefined },
): AsyncIterable<SentEvent> {
  const items = engines.store.subscribe({
    filter: filterFor({ principal, query }),
    signal,
    pageBytes,
    aroundLoad: memory.load,
    after: after === undefined || after === 'end' ? after : parsePosition(after),
  });
  const hider = hiderFor(principal, createSecretHider(modules));
  return feedEvents(items, { memory, hider, idOf: ({ position }) => position });
}

/** Follows one stream: `after` is a revision or `end`. */
export async function followStream(
  platform: ApiPlatform,
  caller: Caller,
  { stream, after }: { readonly stream: string; readonly after?: string | undefined },
): Promise<AsyncIterable<SentEvent>> {
  await checkStreamAccess(platform, stream, caller);
  const items = platform.engines.store.subscribeToStream(stream, {
    signal: caller.signal,
    pageBytes,
    aroundLoad: caller.memory.load,
    after: after === undefined || after === 'end' ? after : revisionOf(after),
  });
  const hider = hiderFor(caller.principal, createSecretHider(platform.modules));
  const { memory } = caller;
  return feedEvents(items, { memory, hider, idOf: ({ revision }) => String(revision) });
}

/** Callers that are bound to a tenant see only the events of that tenant. */
export function filterFor({
  query,
  principal,
}: Pick<ApiRequest<unknown, EventQuery>, 'principal' | 'query'>): EventFilter {
  const { types, typePrefix, category } = query;
  return {
    types,
    typePrefixes: typePrefix === undefined ? undefined : [typePrefix],
    category,
    tenant: tenantWithin({ principal }, query.tenant),
  };
}

interface FeedOptions {
  readonly memory: ReaderMemory;
  readonly hider: SecretHider;
  readonly idOf: (event: RecordedEvent) => string;
}

async function* feedEvents(
  items: AsyncIterable<FeedItem>,
  options: FeedOptions,
): AsyncGenerator<SentEvent> {
  const { memory } = options;
  for await (const item of items) {
    if (item.kind === 'events') {
      const page = toTexts(item.events, options);
      let bytes = page.reduce((sum, { json }) => sum + textBytes(json), 0);
      for (const sent of page) {
        memory.hold(bytes);
        // The client asks for the next event when it has read this one.
        yield sent;
        bytes -= textBytes(sent.json);
        sent.json = '';
      }
      memory.hold(0);
    } else {
      yield { event: item.kind, data: { position: item.position } };
    }
  }
}

/**
 * As text, an event has a known size; as an object it may be many times larger. The page is emptied, and each text after
 * it was sent, because a generator that waits for the next page keeps this one in memory.
 */
function toTexts(
  events: readonly RecordedEvent[],
  { hider, idOf }: FeedOptions,
): { readonly event: 'event'; readonly id: string; json: string }[] {
  return (events as RecordedEvent[]).splice(0).map((event) => ({
    event: 'event',
    id: idOf(event),
    json: jsonText(hider.event(event)),
  }));
}

function revisionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new MillraceError('REQUEST_INVALID', `'${text.slice(0, 40)}' is not a revision`, {
    details: { field: 'after' },
  });
}
