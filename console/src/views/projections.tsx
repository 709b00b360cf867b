// Projections: the versions of each read model, which one queries use, and how far each is.

import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import type { ProjectionVersion } from '../api.gen.ts';
import { call } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { durationText, rateText } from '../lib/format.ts';
import { listOf, poll } from '../lib/list.ts';
import type { OpenSearch } from '../router.tsx';
import { ListView, RowName, type Column } from '../ui/list-view.tsx';
import { Badge } from '../ui/parts.tsx';
import { Empty } from '../ui/states.tsx';
import { Failures, Lag, SubscriptionSheet } from './subscriptions.tsx';

const columns: readonly Column<ProjectionVersion>[] = [
  {
    title: 'Read model',
    cell: ({ family, version, projection }) => (
      <RowName name={`${family} v${version}`} about={projection} />
    ),
  },
  {
    title: 'State',
    cell: ({ status, paused }) => (
      <span className="flex flex-wrap gap-1">
        <Badge tone={status === 'ready' ? 'good' : status.startsWith('ret') ? 'neutral' : 'accent'}>
          {status}
        </Badge>
        {paused ? <Badge tone="warn">paused</Badge> : null}
      </span>
    ),
  },
  {
    title: 'Queries',
    isExtra: true,
    cell: ({ active }) =>
      active ? (
        <Badge tone="accent">uses this version</Badge>
      ) : (
        <span className="text-soft">another version</span>
      ),
  },
  {
    title: 'Lag',
    isRight: true,
    cell: ({ behind, seconds, unit, rebuild }) =>
      rebuild?.state === 'running' && rebuild.progress !== undefined ? (
        <Progress {...rebuild.progress} />
      ) : behind === undefined ? (
        <span className="text-soft">–</span>
      ) : (
        <Lag behind={behind} seconds={seconds ?? 0} unit={unit ?? 'events'} />
      ),
  },
  {
    title: 'Dead letters',
    isRight: true,
    isExtra: true,
    cell: ({ deadLetters }) => <Failures count={deadLetters} />,
  },
];

function Progress({
  done,
  eventsPerSecond,
  secondsLeft,
}: {
  readonly done: number;
  readonly eventsPerSecond: number;
  readonly secondsLeft?: number | undefined;
}) {
  const left = secondsLeft === undefined ? '' : `, ${durationText(secondsLeft * 1_000)} left`;
  return (
    <span className="inline-flex flex-col items-end gap-1">
      <progress aria-label="Rebuild" max={1} value={done} className="h-1.5 w-24" />
      <span className="text-2xs text-soft">
        {Math.floor(done * 100)} %, {rateText(eventsPerSecond)}/s{left}
      </span>
    </span>
  );
}

export function ProjectionsView() {
  const { open } = useSearch({ from: '/projections' });
  const change = useSearchChange<OpenSearch>('open');
  const query = useQuery({
    queryKey: ['projections'],
    queryFn: ({ signal }) => call('GET /admin/projections', { signal }),
    refetchInterval: poll,
  });
  const onOpen = (key: string | undefined): void => change({ open: key });
  return (
    <ListView
      title="Projections"
      label="Projections"
      aside="versions of read models"
      list={listOf(query, query.data?.items)}
      columns={columns}
      keyOf={({ projection }) => projection}
      open={open}
      onOpen={onOpen}
      empty={
        <Empty title="No projections" command="npx millrace new aggregate shop order">
          A projection turns events into the documents of a read model. This command writes one:
        </Empty>
      }
    >
      <SubscriptionSheet name={open} onClose={() => onOpen(undefined)} />
    </ListView>
  );
}
