// Jobs, newest first, by state, task type and tenant; task types with their modes; workers.

import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { Pause, Play } from 'lucide-react';
import type { Task, TaskType } from '../api.gen.ts';
import { call, serverUrl, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { durationText } from '../lib/format.ts';
import { jobStates, listOf, pageSize, poll, useList } from '../lib/list.ts';
import { allows, useSession } from '../lib/session.ts';
import type { JobSearch } from '../router.tsx';
import { Actions } from '../ui/actions.tsx';
import { Choices, FilterBar, TextFilters } from '../ui/filters.tsx';
import { ListBox, ListView, RowName, type Column } from '../ui/list-view.tsx';
import { Ago, Badge, PageTitle, Time } from '../ui/parts.tsx';
import { Empty } from '../ui/states.tsx';
import { attemptText, JobSheet, JobState } from './job-sheet.tsx';

const enqueueCommand = `curl -d '{"type":"email-send","payload":{}}' -H 'content-type: application/json' -H "authorization: Bearer $TOKEN" ${serverUrl.href}api/v1/jobs`;

const columns: readonly Column<Task>[] = [
  { title: 'Job', cell: ({ type, id }) => <RowName name={type} about={id} /> },
  { title: 'State', cell: (job) => <JobState job={job} /> },
  {
    title: 'Attempt',
    isRight: true,
    isExtra: true,
    cell: (job) => <span className="whitespace-nowrap text-soft">{attemptText(job)}</span>,
  },
  {
    title: 'Tenant',
    isExtra: true,
    cell: ({ tenant }) => <span className="text-soft">{tenant ?? '–'}</span>,
  },
  {
    title: 'Took',
    isRight: true,
    isExtra: true,
    cell: ({ claimedAt, endedAt }) => (
      <span className="whitespace-nowrap text-soft">
        {claimedAt === undefined || endedAt === undefined
          ? '–'
          : durationText(Date.parse(endedAt) - Date.parse(claimedAt))}
      </span>
    ),
  },
  { title: 'Changed', isRight: true, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

export function JobsView() {
  const { show } = useSearch({ from: '/jobs' });
  return show === undefined ? (
    <Jobs />
  ) : (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Jobs" />
      <Tabs />
      {show === 'types' ? <Types /> : <Workers />}
    </div>
  );
}

const useChange = () => useSearchChange<JobSearch>('open');

function Tabs() {
  const session = useSession();
  const { show } = useSearch({ from: '/jobs' });
  const change = useChange();
  return (
    <Choices
      label="What is shown"
      value={show}
      onChange={(value) => change({ show: value, open: undefined })}
      choices={[
        { value: undefined, title: 'Jobs' },
        { value: 'types', title: 'Task types' },
        ...(allows(session, 'GET /api/v1/jobs/workers')
          ? [{ value: 'workers', title: 'Workers' } as const]
          : []),
      ]}
    />
  );
}

function Jobs() {
  const session = useSession();
  const { state, type, tenant, open } = useSearch({ from: '/jobs' });
  const change = useChange();
  const counts = useQuery({
    queryKey: ['jobs', 'counts'],
    queryFn: ({ signal }) => call('GET /api/v1/jobs/counts', { signal }),
    enabled: allows(session, 'GET /api/v1/jobs/counts'),
    refetchInterval: poll,
  });
  const list = useList({
    queryKey: ['jobs', state, type, tenant],
    load: (cursor, signal) =>
      call('GET /api/v1/jobs', {
        query: {
          ...(state === undefined ? {} : { state: [state] }),
          type,
          tenant,
          cursor,
          limit: pageSize,
        },
        signal,
      }),
    keyOf,
  });
  const countOf = (wanted: string): number | undefined =>
    counts.data?.items
      .filter((each) => type === undefined || each.type === type)
      .reduce((sum, { states: all }) => sum + (all[wanted] ?? 0), 0);
  return (
    <ListView
      title="Jobs"
      label="Jobs"
      aside="newest first"
      filters={
        <FilterBar
          choices={
            <>
              <Tabs />
              <Choices
                label="State"
                value={state}
                onChange={(value) => change({ state: value, open: undefined })}
                choices={[
                  { value: undefined, title: 'All states' },
                  ...jobStates.map((value) => ({ value, title: value, count: countOf(value) })),
                ]}
              />
            </>
          }
        >
          <TextFilters
            fields={[
              { name: 'type', title: 'Task type', example: 'email-send' },
              { name: 'tenant', title: 'Tenant', example: 'core' },
            ]}
            values={{ type, tenant }}
            onChange={(values) => change({ ...values, open: undefined })}
          />
        </FilterBar>
      }
      list={list}
      columns={columns}
      keyOf={keyOf}
      open={open}
      onOpen={(id) => change({ open: id })}
      isFiltered={(state ?? type ?? tenant) !== undefined}
      onReset={() => change({ state: undefined, type: undefined, tenant: undefined })}
      empty={
        <Empty title="No jobs yet" command={enqueueCommand}>
          A job is one unit of background work. This command enqueues one:
        </Empty>
      }
    >
      <JobSheet id={open} onClose={() => change({ open: undefined })} />
    </ListView>
  );
}

const keyOf = ({ id }: { readonly id: string }): string => id;

function Types() {
  const query = useQuery({
    queryKey: ['task-types'],
    queryFn: ({ signal }) => call('GET /api/v1/jobs/types', { signal }),
  });
  return (
    <ListBox
      label="Task types"
      list={listOf(query, query.data?.items)}
      columns={typeColumns}
      keyOf={({ name }) => name}
      empty={
        <Empty title="No task types">
          Modules define task types with <span className="mono">taskType()</span>, or a YAML file
          lists them.
        </Empty>
      }
    />
  );
}

const typeColumns: readonly Column<TaskType>[] = [
  { title: 'Task type', cell: ({ name }) => <RowName name={name} /> },
  {
    title: 'Mode',
    cell: ({ mode }) => <Badge tone={mode === 'open' ? 'good' : 'warn'}>{mode}</Badge>,
  },
  {
    title: 'Concurrent jobs per process',
    isRight: true,
    isExtra: true,
    cell: ({ workers }) => workers,
  },
  { title: 'Retries', isRight: true, isExtra: true, cell: ({ retries }) => retries },
  {
    title: 'Step time limit',
    isRight: true,
    isExtra: true,
    cell: ({ stepTimeoutMs }) => durationText(stepTimeoutMs),
  },
  {
    title: 'Kept',
    isRight: true,
    isExtra: true,
    cell: ({ retentionMs }) => durationText(retentionMs),
  },
  {
    title: 'Actions',
    isRight: true,
    cell: (type) => (
      <div className="flex justify-end">
        <TypeActions type={type} />
      </div>
    ),
  },
];

function TypeActions({ type: { name, mode } }: { readonly type: TaskType }) {
  const verb = mode === 'open' ? 'pause' : 'resume';
  const route = `POST /admin/jobs/types/{type}/${verb}` as const;
  return (
    <Actions
      isInRow
      refresh={['task-types']}
      actions={[
        {
          route,
          label: verb === 'pause' ? 'Pause' : 'Resume',
          icon: verb === 'pause' ? Pause : Play,
          run: async () => `${name} is ${(await call(route, { params: { type: name } })).mode}.`,
        },
      ]}
    />
  );
}

type Worker = ResponseOf<'GET /api/v1/jobs/workers'>['items'][number];

const workerColumns: readonly Column<Worker>[] = [
  { title: 'Worker', cell: ({ worker }) => <RowName name={worker} /> },
  {
    title: 'State',
    cell: ({ isAlive }) => (isAlive ? <Badge tone="good">active</Badge> : <Badge>lost</Badge>),
  },
  { title: 'Active until', isRight: true, cell: ({ aliveUntil }) => <Time at={aliveUntil} /> },
];

function Workers() {
  const query = useQuery({
    queryKey: ['workers'],
    queryFn: ({ signal }) => call('GET /api/v1/jobs/workers', { signal }),
    refetchInterval: poll,
  });
  return (
    <ListBox
      label="Workers"
      list={listOf(query, query.data?.items)}
      columns={workerColumns}
      keyOf={({ worker }) => worker}
      empty={
        <Empty title="No active workers">
          Processes with the role tasks, and workers that use the HTTP protocol, appear here.
        </Empty>
      }
    />
  );
}
