// Links (`$>`, data `<revision>@<stream>`) and their targets.

import { hasCode } from '../../../foundation/error.ts';
import { toPosition, toSequence } from '../../../store/position.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { contentOf, linkTo, linkType, type ReadEvent } from '../events/to-wire.ts';
import { indexFilter } from './index-stream.ts';
import type { CallInfo } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import type { ReadPlan } from './read-plan.ts';

export interface LinkTarget {
  readonly stream: string;
  readonly revision: number;
}

/** Undefined if the payload does not have the form of a link. */
export function parseLink(text: string): LinkTarget | undefined {
  const match = /^(\d{1,16})@(.+)$/s.exec(text);
  if (match === null) return undefined;
  return { revision: Number(match[1]), stream: match[2] ?? '' };
}

export interface ResolveOptions {
  /** Targets without access count as deleted. */
  readonly mayRead: (stream: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** A page of small links may have large targets, so only this many are in memory at the same time. */
const targetsMax = 4;

/** Links get their targets; other events are unchanged. */
export async function* resolveLinks(
  store: EventStore,
  events: readonly RecordedEvent[],
  options: ResolveOptions,
): AsyncGenerator<ReadEvent, void, undefined> {
  const resolve = async (event: RecordedEvent): Promise<ReadEvent> => {
    if (event.type !== linkType) return { event };
    const target = parseLink(contentOf(event).data.toString('utf8'));
    const found = target === undefined ? undefined : await eventAt(store, target, options);
    // Check the stream of the event: a link may point to it through an index stream of all tenants.
    const readable = found !== undefined && (await options.mayRead(found.stream));
    return { link: event, event: readable ? found : undefined };
  };
  for (let at = 0; at < events.length; at += targetsMax) {
    yield* await Promise.all(events.slice(at, at + targetsMax).map(resolve));
  }
}

/** The target of a link, also through an index stream; undefined: deleted. */
export async function eventAt(
  store: EventStore,
  { stream, revision }: LinkTarget,
  { signal }: Pick<ResolveOptions, 'signal'>,
): Promise<RecordedEvent | undefined> {
  const filter = indexFilter(stream);
  try {
    const [event] =
      filter === undefined
        ? await store.readStream(stream, { from: revision, limit: 1, signal }).toArray()
        : await store
            .readAll({ after: toPosition(Math.max(0, revision - 1)), filter, limit: 1, signal })
            .toArray();
    if (event === undefined) return undefined;
    if (filter === undefined) return event.revision === revision ? event : undefined;
    const isFound = toSequence(event.position) === revision && (await store.areVisible([event]))[0];
    return isFound === true ? event : undefined;
  } catch (error) {
    if (hasCode(error, 'STREAM_DELETED')) return undefined;
    throw error;
  }
}

/**
 * Events of an index stream as links. A resolved link has no event if the stream of the event does not show it any more;
 * a live reader gets each event.
 */
export async function asLinks(
  store: Pick<EventStore, 'areVisible'>,
  events: readonly RecordedEvent[],
  { stream, resolve, isLive }: { stream: string; resolve: boolean; isLive: boolean },
): Promise<readonly ReadEvent[]> {
  const visible = resolve && !isLive ? await store.areVisible(events) : undefined;
  return events.map((event, index) => {
    const link = linkTo(event, stream);
    if (!resolve) return { event: link };
    return { event: visible?.[index] === false ? undefined : event, link };
  });
}

/** Events for a reader: as links in index streams, with resolved links elsewhere. */
export async function toReadEvents(
  { store, access }: KurrentContext,
  { source, resolveLinks: resolve }: Pick<ReadPlan, 'source' | 'resolveLinks'>,
  events: readonly RecordedEvent[],
  {
    identity,
    signal,
    isLive = false,
  }: Pick<CallInfo, 'identity' | 'signal'> & { isLive?: boolean },
): Promise<readonly ReadEvent[] | AsyncIterable<ReadEvent>> {
  if (source.kind === 'index') {
    return asLinks(store, events, { stream: source.stream, resolve, isLive });
  }
  if (!resolve || !events.some(({ type }) => type === linkType)) {
    return events.map((event) => ({ event }));
  }
  const mayRead = (stream: string): Promise<boolean> => access.mayRead(identity, stream);
  return resolveLinks(store, events, { mayRead, signal });
}
