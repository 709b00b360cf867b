// The deployment: engines and what they promise, the checks of `millrace doctor`, modules and the process.

import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleHelp, OctagonAlert, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { poll } from '../lib/list.ts';
import { RowName, Table, type Column } from '../ui/list-view.tsx';
import { Ago, Badge, Button, cx, Fact, Facts, PageTitle, Panel } from '../ui/parts.tsx';
import { Failed, Loading } from '../ui/states.tsx';

type System = ResponseOf<'GET /admin/system'>;
type Doctor = ResponseOf<'GET /admin/doctor'>;
type Finding = Doctor['engines'][number]['findings'][number];

export function SystemView() {
  const { data, error, refetch } = useQuery({
    queryKey: ['system'],
    queryFn: ({ signal }) => call('GET /admin/system', { signal }),
  });
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="System" />
      {data === undefined ? (
        <Panel>
          {error === null ? (
            <Loading rows={10} />
          ) : (
            <Failed error={error} onRetry={() => void refetch()} />
          )}
        </Panel>
      ) : (
        <>
          <ProcessesPanel />
          <Panel title="Engines" aside="role → engine">
            <Table label="Engines" columns={engineColumns} rows={data.roles} keyOf={roleOf} />
          </Panel>
          <DoctorPanel />
          <div className="grid items-start gap-4 xl:grid-cols-2">
            <Panel title="Modules" aside={data.modules.length}>
              {data.modules.length === 0 ? (
                <Nothing>No module is configured; see millrace.config.ts.</Nothing>
              ) : (
                <Table
                  label="Modules"
                  columns={moduleColumns}
                  rows={data.modules}
                  keyOf={({ name }) => name}
                />
              )}
            </Panel>
            <Panel title="Process" aside="that responds to this page">
              <div className="px-4 py-3">
                <ProcessFacts process={data.process} />
              </div>
            </Panel>
          </div>
        </>
      )}
    </div>
  );
}

function Nothing({ children }: { readonly children: ReactNode }) {
  return <p className="px-4 py-4 text-xs text-soft">{children}</p>;
}

const roleOf = ({ role }: { readonly role: string }): string => role;

const engineColumns: readonly Column<System['roles'][number]>[] = [
  { title: 'Role', cell: ({ title }) => <span className="font-medium">{title}</span> },
  {
    title: 'Engine',
    cell: ({ engine, warning }) => (
      <span className="flex items-center gap-1.5">
        {engine ?? <span className="text-soft">off</span>}
        {warning === undefined ? null : (
          <span title={warning}>
            <TriangleAlert size={13} aria-label={warning} className="text-warn" />
          </span>
        )}
      </span>
    ),
  },
  {
    title: 'URL',
    cell: ({ url }) => <span className="mono break-all text-soft">{url ?? '–'}</span>,
  },
  {
    title: 'An acknowledgement survives',
    isExtra: true,
    cell: ({ survives }) => <span className="text-soft">{survives ?? '–'}</span>,
  },
  {
    title: 'Shared by',
    isExtra: true,
    cell: ({ sharedBy }) => <span className="text-soft">{sharedBy ?? '–'}</span>,
  },
];

const moduleColumns: readonly Column<System['modules'][number]>[] = [
  { title: 'Module', cell: ({ name }) => <span className="mono font-medium">{name}</span> },
  { title: 'Aggregates', cell: ({ aggregates }) => <Names names={aggregates} /> },
  { title: 'Projections', isExtra: true, cell: ({ projections }) => <Names names={projections} /> },
  { title: 'Sagas', isExtra: true, cell: ({ sagas }) => <Names names={sagas} /> },
];

function Names({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span className="text-soft">–</span>;
  return (
    <ul className="mono text-soft">
      {names.map((name) => (
        <li key={name} className="break-all">
          {name}
        </li>
      ))}
    </ul>
  );
}

function ProcessFacts({ process }: { readonly process: System['process'] }) {
  const { host, pid, node, startedAt, memoryBytes, roles } = process;
  return (
    <Facts>
      <Fact name="Host">
        <span className="mono break-all">
          {host}, pid {pid}
        </span>
      </Fact>
      <Fact name="Started">
        <Ago at={startedAt} />
      </Fact>
      <Fact name="Node.js">{node}</Fact>
      <Fact name="Memory">{Math.round(memoryBytes / 1_048_576)} MiB</Fact>
      <Fact name="Roles">
        {roles.map((role) => (
          <Badge key={role}>{role}</Badge>
        ))}
      </Fact>
    </Facts>
  );
}

type Process = ResponseOf<'GET /admin/processes'>['items'][number];

const processColumns: readonly Column<Process>[] = [
  {
    title: 'Process',
    cell: ({ id, host, pid, isThis }) => (
      <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <RowName name={host ?? id} about={pid === undefined ? undefined : `pid ${pid}`} />
        {isThis ? <Badge tone="accent">this server</Badge> : null}
      </span>
    ),
  },
  {
    title: 'Roles',
    cell: ({ roles, taskTypes = [] }) => (
      <span className="break-words">
        {roles.join(', ')}
        {taskTypes.length === 0 ? null : (
          <span className="mono block text-2xs break-all text-soft">{taskTypes.join(', ')}</span>
        )}
      </span>
    ),
  },
  {
    title: 'Version',
    isExtra: true,
    cell: ({ version, node }) => (
      <span className="whitespace-nowrap text-soft">
        {version ?? '–'}
        {node === undefined ? null : <span className="block text-2xs">Node.js {node}</span>}
      </span>
    ),
  },
  {
    title: 'Started',
    isExtra: true,
    cell: ({ startedAt }) => (startedAt === undefined ? '–' : <Ago at={startedAt} />),
  },
  {
    title: 'Heartbeat',
    isRight: true,
    cell: ({ heardAt }) =>
      heardAt === undefined ? <span className="text-soft">–</span> : <Ago at={heardAt} />,
  },
];

function ProcessesPanel() {
  const { data, error, refetch } = useQuery({
    queryKey: ['processes'],
    queryFn: ({ signal }) => call('GET /admin/processes', { signal }),
    refetchInterval: poll,
  });
  return (
    <Panel title="Processes" aside={data === undefined ? null : `${data.items.length} running`}>
      {error !== null && data === undefined ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={2} />
      ) : data.items.length === 0 ? (
        <Nothing>No process has announced itself yet.</Nothing>
      ) : (
        <Table
          label="Processes"
          columns={processColumns}
          rows={data.items}
          keyOf={({ id }) => id}
        />
      )}
    </Panel>
  );
}

const levels = {
  ok: [CircleCheck, 'text-good', 'good'],
  warning: [TriangleAlert, 'text-warn', 'warning'],
  broken: [OctagonAlert, 'text-bad', 'broken'],
  unknown: [CircleHelp, 'text-soft', 'could not be checked'],
} as const;

function DoctorPanel() {
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['doctor'],
    queryFn: ({ signal }) => call('GET /admin/doctor', { signal }),
    staleTime: 30_000,
  });
  return (
    <Panel
      title="Doctor"
      aside={
        <>
          {data === undefined ? null : (
            <span>
              checked <Ago at={data.at} />
            </span>
          )}
          <Button look="quiet" disabled={isFetching} onClick={() => void refetch()}>
            {isFetching ? 'Checking…' : 'Check again'}
          </Button>
        </>
      }
    >
      {error !== null && data === undefined ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={4} />
      ) : (
        <ul className="divide-y divide-line">
          {data.engines.map(({ roles, url, findings }) => (
            <li key={url} className="flex flex-col gap-2 px-4 py-3">
              <p className="flex flex-wrap items-center gap-2 text-xs">
                <span className="mono font-medium break-all">{url}</span>
                {roles.map((role) => (
                  <Badge key={role}>{role}</Badge>
                ))}
              </p>
              <Findings findings={findings} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul className="grid gap-x-6 gap-y-1.5 text-xs lg:grid-cols-2">
      {findings.map(({ check, level, detail, remedy }, at) => {
        const [Icon, tone, text] = levels[level];
        return (
          <li key={at} className="flex items-start gap-2">
            <Icon size={14} aria-label={text} className={cx('mt-0.5 shrink-0', tone)} />
            <span className="min-w-0">
              <span className="font-medium">{check}</span>{' '}
              <span className="break-words text-soft">{detail}</span>
              {remedy === undefined || level === 'ok' ? null : (
                <span className="block text-soft">{remedy}</span>
              )}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
