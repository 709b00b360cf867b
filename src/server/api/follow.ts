// Live subscriptions over server-sent events and WebSockets: the filter of a caller and the start position.

import { MillraceError } from '../../foundation/error.ts';
import type { EventFilter } from '../../store/event-filter.ts';
import type { FeedItem } from '../../store/event-store.ts';
import { parsePosition } from '../../store/position.ts';
import { createSecretHider, type SecretHider } from '../../platform/modules/hide-secrets.ts';
import type { ApiRequest } from '../../platform/modules/route.ts';
import type { SentEvent } from '../../platform/modules/server-sent-events.ts';
import { tenantWithin, checkStreamAccess, type ApiPlatform } from './api-context.ts';

type Caller = Pick<ApiRequest, 'headers' | 'principal' | 'signal'>;

export interface EventQuery {
  readonly types?: readonly string[] | undefined;
  readonly typePrefix?: string | undefined;
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
}

/** Follows all streams: `after` is a position or `end`. Invalid input throws before the first event. */
export function followEvents(
  { engines, modules }: ApiPlatform,
  { principal, signal }: Caller,
  { after, ...query }: EventQuery & { readonly after?: string | undefined },
): AsyncIterable<SentEvent> {
  const items = engines.store.subscribe({
    filter: filterFor({ principal, query }),
    signal,
    after: after === undefined || after === 'end' ? after : parsePosition(after),
  });
  return feedEvents(items, createSecretHider(modules), ({ position }) => position);
}

/** Follows one stream: `after` is a revision or `end`. */
export function followStream(
  platform: ApiPlatform,
  caller: Caller,
  { stream, after }: { readonly stream: string; readonly after?: string | undefined },
): AsyncIterable<SentEvent> {
  checkStreamAccess(platform, stream, caller);
  const items = platform.engines.store.subscribeToStream(stream, {
    signal: caller.signal,
    after: after === undefined || after === 'end' ? after : revisionOf(after),
  });
  const hider = createSecretHider(platform.modules);
  return feedEvents(items, hider, ({ revision }) => String(revision));
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

async function* feedEvents(
  items: AsyncIterable<FeedItem>,
  hider: SecretHider,
  idOf: (event: { readonly position: string; readonly revision: number }) => string,
): AsyncGenerator<SentEvent> {
  for await (const item of items) {
    if (item.kind === 'events') {
      for (const event of item.events) {
        yield { event: 'event', id: idOf(event), data: hider.event(event) };
      }
    } else {
      yield { event: item.kind, data: { position: item.position } };
    }
  }
}

function revisionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new MillraceError('REQUEST_INVALID', `'${text.slice(0, 40)}' is not a revision`, {
    details: { field: 'after' },
  });
}
