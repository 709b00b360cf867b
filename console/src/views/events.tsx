// All events, newest first: filter, open one, or follow new ones.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowUp, Radio } from 'lucide-react';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { countText } from '../lib/format.ts';
import { useShortcuts } from '../lib/keys.ts';
import { nextPageOf } from '../lib/list.ts';
import { useFollow, type FollowFilter, type LiveEvent } from '../lib/live.ts';
import { timeSpans, type EventSearch } from '../router.tsx';
import { Button, cx, PageTitle, Time } from '../ui/parts.tsx';
import { Empty, Failed, Loading, MoreRows, NoMatch } from '../ui/states.tsx';
import { badFieldOf, EventFilters, noFilter } from './event-filters.tsx';
import { EventSheet, type EventPlace } from './event-sheet.tsx';

const pageSize = 100;
const rowHeight = 36;
/** Live rows that are kept in addition to the loaded pages. */
const tailMax = 500;
/** The position before the first event. */
const beforeAll = '0'.repeat(16);

export function EventsView() {
  const search = useSearch({ from: '/events' });
  const setSearch = useSearchChange<EventSearch>('sel');
  const client = useQueryClient();
  const filter = useMemo(() => filterOf(search), [search]);
  const conditions = useMemo(() => conditionsOf(search), [search]);
  const isSearch = conditions !== undefined;
  const key = JSON.stringify([filter, conditions]);
  const pages = useInfiniteQuery({
    queryKey: ['events', key],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }): Promise<EventPage> =>
      conditions === undefined
        ? call('GET /api/v1/events', {
            query: { ...filter, direction: 'backwards', limit: pageSize, cursor: pageParam },
            signal,
          })
        : call('GET /api/v1/events/search', {
            query: { ...filter, ...timesOf(conditions), limit: pageSize, cursor: pageParam },
            signal,
          }),
    getNextPageParam: (page) => page.cursor,
    retry: false,
  });
  const nextPage = nextPageOf(pages);
  const firstError = pages.data === undefined ? pages.error : null;
  const searched = searchedBy(pages.data?.pages);
  // A page that is not full ended at a limit of the search, which an operator continues.
  const isPageFull = (pages.data?.pages.at(-1)?.items.length ?? 0) >= pageSize;
  const loaded = useMemo(() => pages.data?.pages.flatMap(({ items }) => items) ?? [], [pages.data]);
  const newest = loaded[0]?.position ?? beforeAll;
  const tail = useTail(filter, pages.isSuccess && !isSearch ? newest : undefined);
  const isLive = search.live === true && !isSearch;
  const fresh = tail.arrived.filter(({ position }) => position > newest);
  const shown = isLive ? fresh : fresh.filter(({ position }) => position <= tail.shownTo);
  const unseen = fresh.length - shown.length;
  const events = useMemo(
    () => (tail.isOverflowing && isLive ? shown : withoutDuplicates([...shown, ...loaded])),
    [tail.isOverflowing, isLive, shown, loaded],
  );
  const isFiltered = isSearch || JSON.stringify(filter) !== '{}';
  const selected = events.findIndex((event) => nameOf(event) === search.sel);
  const select = (at: number): void => {
    const event = events[Math.max(0, Math.min(at, events.length - 1))];
    if (event !== undefined) setSearch({ sel: nameOf(event) });
  };
  const showNew = (): void => {
    if (!tail.isOverflowing) return tail.show();
    tail.clear();
    void client.resetQueries({ queryKey: ['events', key] });
  };
  const toggleLive = (): void => {
    if (isSearch) return;
    // What was shown while live was on stays.
    if (isLive) showNew();
    setSearch({ live: isLive ? undefined : true });
  };
  useShortcuts({
    j: () => select(selected + 1),
    k: () => select(selected - 1),
    l: toggleLive,
    Escape: () => setSearch({ sel: undefined }),
  });
  return (
    <div className="flex h-full flex-col gap-3 p-4 sm:p-6">
      <PageTitle title="Events">
        <Button
          aria-pressed={isLive}
          look={isLive ? 'primary' : 'plain'}
          disabled={isSearch}
          title={isSearch ? 'Live needs a filter by type, category and tenant only' : undefined}
          onClick={toggleLive}
          className="ml-auto"
        >
          <Radio size={14} aria-hidden className={cx(isLive && 'pulse')} />
          Live
        </Button>
      </PageTitle>
      <EventFilters search={search} onChange={setSearch} error={firstError} />
      <div className="relative flex min-h-0 flex-1 flex-col overflow-hidden rounded-lg border border-line bg-panel">
        {pages.isFetching ? (
          <div className="absolute inset-x-0 top-0 z-10 h-0.5 overflow-hidden">
            <div className="bar h-full w-1/4 bg-accent" />
          </div>
        ) : null}
        {unseen > 0 ? (
          <button
            type="button"
            onClick={showNew}
            className="absolute top-10 left-1/2 z-10 flex h-7 -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 text-xs font-medium text-on-accent shadow-float"
          >
            <ArrowUp size={13} aria-hidden />
            {unseen}
            {tail.isOverflowing ? '+' : ''} new
          </button>
        ) : null}
        {badFieldOf(firstError) !== undefined ? (
          <Empty title="The filter is not valid">
            Correct the marked field; the other filters stay.
          </Empty>
        ) : firstError !== null ? (
          <Failed error={firstError} onRetry={() => void pages.refetch()} />
        ) : pages.isPending ? (
          <Loading rows={12} />
        ) : events.length === 0 ? (
          isFiltered ? (
            <NoMatch onReset={() => setSearch(noFilter)}>
              {searched === undefined ? null : (
                <SearchedText searched={searched} isOver={!pages.hasNextPage} />
              )}
              {pages.hasNextPage && nextPage.moreError === null ? (
                <Button
                  look="primary"
                  disabled={pages.isFetching}
                  onClick={() => void pages.fetchNextPage()}
                >
                  {pages.isFetching ? 'Searching…' : 'Search further'}
                </Button>
              ) : null}
            </NoMatch>
          ) : (
            <Empty title="No events yet" command="npm run millrace -- dev">
              Every appended event appears here. This command runs Millrace with sample data:
            </Empty>
          )
        ) : (
          <EventList
            events={events}
            selected={selected}
            onSelect={select}
            hasMore={
              pages.hasNextPage && !(tail.isOverflowing && isLive) && (!isSearch || isPageFull)
            }
            onMore={() => {
              if (!pages.isFetchingNextPage && pages.error === null) void pages.fetchNextPage();
            }}
          >
            {nextPage.moreError !== null ? (
              <p>{events.length} loaded</p>
            ) : searched === undefined ? null : (
              <>
                <SearchedText searched={searched} isOver={!pages.hasNextPage} />
                {pages.hasNextPage ? (
                  <button
                    type="button"
                    disabled={pages.isFetching}
                    onClick={() => void pages.fetchNextPage()}
                    className="font-medium text-accent hover:underline"
                  >
                    {pages.isFetching ? 'Searching…' : 'Search further'}
                  </button>
                ) : null}
              </>
            )}
          </EventList>
        )}
      </div>
      {nextPage.moreError === null ? null : <MoreRows page={nextPage} />}
      <EventSheet
        place={placeOf(search.sel)}
        listed={events[selected]}
        isListed={pages.isSuccess}
        onClose={() => setSearch({ sel: undefined })}
      />
    </div>
  );
}

/** An event in the address: it can be found when the list has moved on. */
const nameOf = ({ stream, revision }: LiveEvent): string => `${stream}@${revision}`;

function placeOf(name: string | undefined): EventPlace | undefined {
  const at = name?.lastIndexOf('@') ?? -1;
  if (name === undefined) return undefined;
  return at < 0
    ? { stream: name, revision: '' }
    : { stream: name.slice(0, at), revision: name.slice(at + 1) };
}

/** Events that arrive while the list is open, at most `tailMax`. They are shown when the user wants them. */
function useTail(filter: FollowFilter, after: string | undefined) {
  const [arrived, setArrived] = useState<readonly LiveEvent[]>([]);
  const [shownTo, setShownTo] = useState('');
  const [isOverflowing, setOverflowing] = useState(false);
  const key = JSON.stringify(filter);
  const clear = (): void => {
    setArrived([]);
    setOverflowing(false);
  };
  useEffect(clear, [key]);
  useFollow(filter, after, (events) => {
    const all = [...events.toReversed(), ...arrived];
    if (all.length > tailMax) setOverflowing(true);
    setArrived(all.slice(0, tailMax));
  });
  return {
    arrived,
    shownTo,
    isOverflowing,
    clear,
    show: () => setShownTo(arrived[0]?.position ?? ''),
  };
}

function filterOf({ type, category, tenant }: EventSearch): {
  readonly types?: readonly string[];
  readonly typePrefix?: string;
  readonly category?: string;
  readonly tenant?: string;
} {
  const isWhole = type !== undefined && /\.v\d+$/.test(type);
  return {
    ...(type === undefined ? {} : isWhole ? { types: [type] } : { typePrefix: type }),
    ...(category === undefined ? {} : { category }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

interface EventPage {
  readonly items: readonly LiveEvent[];
  readonly cursor?: string | undefined;
  readonly searched?: Searched | undefined;
}

type Searched = ResponseOf<'GET /api/v1/events/search'>['searched'];

type Conditions = Pick<EventSearch, 'flow' | 'from' | 'payload' | 'since' | 'stream' | 'until'>;

/** Undefined: the list of events has all filters that are set. */
function conditionsOf(search: EventSearch): Conditions | undefined {
  const { stream, flow, payload, since, from, until } = search;
  const given = { stream, flow, payload, since, from, until };
  return Object.values(given).some((each) => each !== undefined) ? given : undefined;
}

/** A relative time starts when the page is asked for. */
function timesOf({ stream, flow, payload, since, from, until }: Conditions) {
  return {
    stream,
    correlationId: flow,
    payload: payload === undefined ? undefined : [payload],
    from: since === undefined ? from : new Date(Date.now() - timeSpans[since]).toISOString(),
    until: since === undefined ? until : undefined,
  };
}

/** How far all pages looked together. */
function searchedBy(pages: readonly EventPage[] | undefined): Searched | undefined {
  const all = (pages ?? []).flatMap(({ searched }) => searched ?? []);
  const [first] = all;
  if (first === undefined) return undefined;
  const events = all.reduce((sum, each) => sum + each.events, 0);
  return { ...first, events, back: all.findLast(({ back }) => back !== undefined)?.back };
}

function SearchedText({
  searched: { events, back, by, complete },
  isOver,
}: {
  readonly searched: Searched;
  readonly isOver: boolean;
}) {
  return (
    <p role="status">
      Searched {events === 1 ? '1 event' : `${countText(events)} events`}
      {by === 'trace-index' ? ' of the flow, by the index of traces' : ''}
      {back === undefined ? null : (
        <>
          {' '}
          back to <Time at={back} />
        </>
      )}
      {isOver ? ', that is all.' : '.'}
      {complete ? null : (
        <span className="text-warn"> The index is behind: the latest events may be missing.</span>
      )}
    </p>
  );
}

/** An event that arrives live may be in a page as well. */
function withoutDuplicates(events: readonly LiveEvent[]): readonly LiveEvent[] {
  return [...new Map(events.map((event) => [event.position, event])).values()];
}

function EventList({
  events,
  selected,
  onSelect,
  hasMore,
  onMore,
  children,
}: {
  readonly events: readonly LiveEvent[];
  readonly selected: number;
  readonly onSelect: (at: number) => void;
  readonly hasMore: boolean;
  readonly onMore: () => void;
  /** Instead of the number of events. */
  readonly children: ReactNode;
}) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    getItemKey: (at) => events[at]?.position ?? at,
    overscan: 12,
  });
  const items = rows.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= events.length - 20) onMore();
  }, [hasMore, lastShown, events.length, onMore]);
  useEffect(() => {
    if (selected >= 0) rows.scrollToIndex(selected, { align: 'auto' });
  }, [selected, rows]);
  return (
    <>
      <div
        aria-hidden
        className="flex h-9 shrink-0 items-center gap-3 border-b border-line px-4 text-2xs text-soft"
      >
        <span className="w-24">Time</span>
        <span className="flex-1">Type</span>
        <span className="hidden flex-[1.4] md:block">Stream</span>
        <span className="hidden w-20 lg:block">Tenant</span>
      </div>
      <div
        ref={box}
        role="listbox"
        aria-label="Events"
        tabIndex={0}
        className="min-h-0 flex-1 overflow-y-auto"
      >
        <div className="relative" style={{ height: rows.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const event = events[index];
            if (event === undefined) return null;
            return (
              <div
                key={key}
                role="option"
                aria-selected={index === selected}
                tabIndex={-1}
                onClick={() => onSelect(index)}
                onKeyDown={({ key: pressed }) => pressed === 'Enter' && onSelect(index)}
                className={cx(
                  'absolute inset-x-0 flex items-center gap-3 border-b border-line px-4',
                  index === selected ? 'bg-accent-wash' : 'hover:bg-hover',
                )}
                style={{ height: rowHeight, transform: `translateY(${start}px)` }}
              >
                <span className="w-24 shrink-0 truncate text-xs">
                  <Time at={event.recordedAt} />
                </span>
                <span className="mono min-w-0 flex-1 truncate font-medium">{event.type}</span>
                <span
                  className="mono hidden min-w-0 flex-[1.4] truncate text-soft md:block"
                  title={event.stream}
                >
                  {event.stream}
                  <span> @{event.revision}</span>
                </span>
                <span className="hidden w-20 shrink-0 truncate text-xs text-soft lg:block">
                  {event.tenant}
                </span>
              </div>
            );
          })}
        </div>
      </div>
      <div className="flex min-h-8 shrink-0 flex-wrap items-center gap-x-3 border-t border-line px-4 py-1 text-2xs text-soft">
        {children ?? (
          <p>
            {events.length} {hasMore ? 'loaded, more when you scroll' : 'events, that is all'}
          </p>
        )}
      </div>
    </>
  );
}
