// Deliveries: the messages of the outbox by status, destination and tenant; destinations with their breakers.

import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import type { OutboxMessage } from '../api.gen.ts';
import { call, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { countText, durationText, rateText } from '../lib/format.ts';
import { listOf, pageSize, poll, useList } from '../lib/list.ts';
import { allows, useSession } from '../lib/session.ts';
import type { DeliverySearch } from '../router.tsx';
import { Choices, FilterBar, TextFilters } from '../ui/filters.tsx';
import { ListBox, ListView, RowName, type Column } from '../ui/list-view.tsx';
import { Ago, Badge, PageTitle, Time } from '../ui/parts.tsx';
import { Empty } from '../ui/states.tsx';
import {
  currentError,
  DeliverySheet,
  DestinationActions,
  MessageActions,
  StatusBadge,
  statusTitles,
} from './delivery-sheet.tsx';

const statuses = ['PENDING', 'CLAIMED', 'FAILED', 'DEAD', 'DISCARDED', 'SENT'] as const;

const columns: readonly Column<OutboxMessage>[] = [
  {
    title: 'Message',
    cell: ({ integrationType, eventType }) => <RowName name={integrationType} about={eventType} />,
  },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Last error',
    isExtra: true,
    cell: (message) => (
      <span className="line-clamp-2 max-w-md break-words text-soft">
        {currentError(message) ?? '–'}
      </span>
    ),
  },
  {
    title: 'Failed attempts',
    isRight: true,
    isExtra: true,
    cell: ({ attempts, maxAttempts }) => (
      <span className="whitespace-nowrap text-soft">
        {attempts} of {maxAttempts}
      </span>
    ),
  },
  {
    title: 'Tenant',
    isExtra: true,
    cell: ({ tenantId }) => <span className="text-soft">{tenantId ?? '–'}</span>,
  },
  { title: 'Changed', isRight: true, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

const changes: Column<OutboxMessage> = {
  title: 'Actions',
  isRight: true,
  isExtra: true,
  cell: (message) => (
    <div className="flex justify-end">
      <MessageActions message={message} isInRow />
    </div>
  ),
};

const useChange = () => useSearchChange<DeliverySearch>('open');

export function DeliveriesView() {
  const { show } = useSearch({ from: '/deliveries' });
  return show === undefined ? <Messages /> : <Destinations />;
}

function Tabs() {
  const session = useSession();
  const { show } = useSearch({ from: '/deliveries' });
  const change = useChange();
  if (!allows(session, 'GET /admin/destinations')) return null;
  return (
    <Choices
      label="What is shown"
      value={show}
      onChange={(value) => change({ show: value, open: undefined })}
      choices={[
        { value: undefined, title: 'Messages' },
        { value: 'destinations', title: 'Destinations' },
      ]}
    />
  );
}

const keyOf = ({ id }: { readonly id: string }): string => id;

function Messages() {
  const session = useSession();
  const { status, destination, tenant, open } = useSearch({ from: '/deliveries' });
  const change = useChange();
  const counts = useQuery({
    queryKey: ['deliveries', 'counts'],
    queryFn: ({ signal }) => call('GET /admin/outbox/counts', { signal }),
    enabled: allows(session, 'GET /admin/outbox/counts'),
    refetchInterval: poll,
  });
  const list = useList({
    queryKey: ['deliveries', status, destination, tenant],
    load: (cursor, signal) =>
      call('GET /admin/outbox', {
        query: { status, destination, tenant, cursor, limit: pageSize },
        signal,
      }),
    keyOf,
  });
  return (
    <ListView
      title="Deliveries"
      label="Deliveries"
      aside="messages of the outbox, newest first"
      filters={
        <FilterBar
          choices={
            <>
              <Tabs />
              <Choices
                label="Status"
                value={status}
                onChange={(value) => change({ status: value, open: undefined })}
                choices={[
                  { value: undefined, title: 'All' },
                  ...statuses.map((value) => ({
                    value,
                    title: statusTitles[value],
                    count: counts.data?.[value],
                  })),
                ]}
              />
            </>
          }
        >
          <TextFilters
            fields={[
              { name: 'destination', title: 'Destination', example: 'webhook:partner' },
              { name: 'tenant', title: 'Tenant', example: 'core' },
            ]}
            values={{ destination, tenant }}
            onChange={(values) => change({ ...values, open: undefined })}
          />
        </FilterBar>
      }
      list={list}
      columns={allows(session, 'POST /admin/outbox/retry') ? [...columns, changes] : columns}
      keyOf={keyOf}
      open={open}
      onOpen={(id) => change({ open: id })}
      isFiltered={(status ?? destination ?? tenant) !== undefined}
      onReset={() => change({ status: undefined, destination: undefined, tenant: undefined })}
      empty={
        <Empty title="No messages">
          A module with an outbox turns events into messages for webhooks, brokers and mail. Each of
          them appears here, with its attempts.
        </Empty>
      }
    >
      <DeliverySheet id={open} onClose={() => change({ open: undefined })} />
    </ListView>
  );
}

type Destination = ResponseOf<'GET /admin/destinations'>['items'][number];

function Breaker({ breaker, openUntil }: Pick<Destination, 'breaker' | 'openUntil'>) {
  return (
    <span className="flex flex-wrap items-center gap-1.5">
      <Badge tone={breaker === 'closed' ? 'good' : breaker === 'open' ? 'bad' : 'warn'}>
        {breaker}
      </Badge>
      {openUntil === undefined ? null : (
        <span className="text-2xs text-soft">
          until <Time at={openUntil} />
        </span>
      )}
    </span>
  );
}

const destinationColumns: readonly Column<Destination>[] = [
  {
    title: 'Destination',
    cell: ({ destination, breaker, openUntil }) => (
      <>
        <RowName name={destination} />
        {breaker === 'closed' ? null : (
          <span className="md:hidden">
            <Breaker breaker={breaker} openUntil={openUntil} />
          </span>
        )}
      </>
    ),
  },
  {
    title: 'State',
    cell: ({ pausedAt, pausedBy, module }) =>
      pausedAt !== undefined ? (
        <span className="flex flex-wrap items-center gap-1.5">
          <Badge tone="warn">paused</Badge>
          <span className="text-2xs text-soft">
            by {pausedBy} <Time at={pausedAt} />
          </span>
        </span>
      ) : module ? (
        <Badge tone="good">active</Badge>
      ) : (
        <Badge tone="bad">no module sends to it</Badge>
      ),
  },
  {
    title: 'Breaker',
    isExtra: true,
    cell: ({ breaker, openUntil }) => <Breaker breaker={breaker} openUntil={openUntil} />,
  },
  {
    title: 'Calls per second',
    isRight: true,
    isExtra: true,
    cell: ({ perSecond }) => (
      <span className="text-soft">{perSecond === undefined ? '–' : rateText(perSecond)}</span>
    ),
  },
  {
    title: 'p95',
    isRight: true,
    isExtra: true,
    cell: ({ p95Ms }) => (
      <span className="text-soft">{p95Ms === undefined ? '–' : durationText(p95Ms)}</span>
    ),
  },
  {
    title: 'Undelivered',
    isRight: true,
    isExtra: true,
    cell: ({ undelivered }) => <span className="text-soft">{countText(undelivered)}</span>,
  },
  {
    title: 'Actions',
    isRight: true,
    cell: ({ destination, pausedAt }) => (
      <div className="flex justify-end">
        <DestinationActions destination={destination} isPaused={pausedAt !== undefined} />
      </div>
    ),
  },
];

function Destinations() {
  const query = useQuery({
    queryKey: ['destinations'],
    queryFn: ({ signal }) => call('GET /admin/destinations', { signal }),
    refetchInterval: poll,
  });
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Deliveries">
        <span className="text-xs text-soft">
          breakers, and calls of the last 5 minutes, of the process that responds
        </span>
      </PageTitle>
      <div className="flex">
        <Tabs />
      </div>
      <ListBox
        label="Destinations"
        list={listOf(query, query.data?.items)}
        columns={destinationColumns}
        keyOf={({ destination }) => destination}
        empty={
          <Empty title="No destinations">
            Modules name their destinations: webhooks, brokers, mail, databases.
          </Empty>
        }
      />
    </div>
  );
}
