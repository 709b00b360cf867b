// One stream: its events, newest first.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { call } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { useShortcuts } from '../lib/keys.ts';
import { nextPageOf } from '../lib/list.ts';
import { useFollow } from '../lib/live.ts';
import type { StreamSearch } from '../router.tsx';
import { FreshButton } from '../ui/list-view.tsx';
import { CopyButton, cx, PageTitle, Panel, Time } from '../ui/parts.tsx';
import { Empty, Failed, Loading, MoreRows } from '../ui/states.tsx';
import { EventSheet } from './event-sheet.tsx';

const pageSize = 100;

export function StreamView() {
  const { stream } = useParams({ from: '/streams/$stream' });
  const { at } = useSearch({ from: '/streams/$stream' });
  const change = useSearchChange<StreamSearch>('at');
  const client = useQueryClient();
  const pages = useInfiniteQuery({
    queryKey: ['stream', stream],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      call('GET /api/v1/streams/{stream}/events', {
        params: { stream },
        query: {
          direction: 'backwards',
          limit: pageSize,
          ...(pageParam === undefined ? {} : { cursor: Number(pageParam) }),
        },
        signal,
      }),
    getNextPageParam: (page) => page.cursor,
  });
  const events = pages.data?.pages.flatMap(({ items }) => items) ?? [];
  const newest = events[0]?.revision;
  const [fresh, setFresh] = useState(0);
  useFollow({ stream }, newest === undefined ? undefined : String(newest), (arrived) =>
    setFresh((before) => before + arrived.length),
  );
  useEffect(() => setFresh(0), [stream]);
  const showFresh = (): void => {
    setFresh(0);
    void client.invalidateQueries({ queryKey: ['stream', stream] });
  };
  const selected = events.findIndex(({ revision }) => String(revision) === String(at));
  const select = (index: number): void => {
    const event = events[Math.max(0, Math.min(index, events.length - 1))];
    change({ at: event?.revision });
  };
  const close = (): void => change({ at: undefined });
  useShortcuts({
    j: () => select(selected + 1),
    k: () => select(selected - 1),
    Escape: close,
  });
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Stream" name={stream}>
        <span className="mono min-w-0 break-all text-soft">{stream}</span>
        <CopyButton text={stream} label="Copy the name of the stream" />
      </PageTitle>
      <Panel title="Events" aside="newest first" className="relative">
        {fresh > 0 ? <FreshButton count={fresh} onClick={showFresh} /> : null}
        {pages.error !== null && pages.data === undefined ? (
          <Failed error={pages.error} onRetry={() => void pages.refetch()} />
        ) : pages.isPending ? (
          <Loading rows={10} />
        ) : events.length === 0 ? (
          <Empty title="This stream has no events">
            Nothing was appended to “{stream}”, or its events were removed.
          </Empty>
        ) : (
          <ul className="divide-y divide-line">
            {events.map((event, index) => (
              <li key={event.revision}>
                <button
                  type="button"
                  aria-current={index === selected}
                  onClick={() => select(index)}
                  className={cx(
                    'flex w-full items-center gap-3 px-4 py-2 text-left',
                    index === selected ? 'bg-accent-wash' : 'hover:bg-hover',
                  )}
                >
                  <span className="mono min-w-10 shrink-0 text-right text-soft">
                    @{event.revision}
                  </span>
                  <span className="mono min-w-0 flex-1 truncate font-medium">{event.type}</span>
                  <span className="text-xs">
                    <Time at={event.recordedAt} />
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <MoreRows page={nextPageOf(pages)} label="Load older events" />
      <EventSheet
        place={at === undefined ? undefined : { stream, revision: String(at) }}
        listed={events[selected]}
        isListed={pages.isSuccess}
        onClose={close}
      />
    </div>
  );
}
