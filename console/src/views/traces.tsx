// Traces: open one by its id, or one of the recent, slow or failed flows.

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type ComponentProps, type FormEvent, type ReactNode } from 'react';
import { call } from '../lib/api.ts';
import { durationText } from '../lib/format.ts';
import { focusRow, useShortcuts } from '../lib/keys.ts';
import { useList } from '../lib/list.ts';
import { useFollow, type LiveEvent } from '../lib/live.ts';
import { allows, useSession } from '../lib/session.ts';
import type { TracesSearch } from '../router.tsx';
import { Choices } from '../ui/filters.tsx';
import { FreshButton } from '../ui/list-view.tsx';
import { Ago, Badge, Button, PageTitle, Panel } from '../ui/parts.tsx';
import { Empty, Failed, Loading, NoMatch } from '../ui/states.tsx';

const eventsRead = 500;
const failuresRead = 200;
const failedWithinMs = 86_400_000;
/** A flow is slow if its events are further apart. */
const slowMs = 1_000;

export function TracesView() {
  const navigate = useNavigate({ from: '/traces' });
  const { show } = useSearch({ from: '/traces' });
  const [id, setId] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (id.trim() !== '') void navigate({ to: '/traces/$id', params: { id: id.trim() } });
  };
  const choose = (value: TracesSearch['show']): void =>
    void navigate({ search: { show: value }, replace: true });
  useShortcuts({ j: () => focusRow(1), k: () => focusRow(-1) });
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Traces" />
      <form onSubmit={submit} className="flex gap-2">
        <input
          data-filter=""
          aria-label="Correlation id"
          placeholder="Correlation id of a request, such as the X-Correlation-Id header"
          value={id}
          onChange={({ target }) => setId(target.value)}
          className="mono h-8 min-w-0 flex-1 rounded-md border border-line bg-panel px-3 text-xs hover:border-strong"
        />
        <Button type="submit" look="primary" disabled={id.trim() === ''}>
          Open
        </Button>
      </form>
      <Choices
        label="Flows"
        value={show}
        onChange={choose}
        choices={[
          { value: undefined, title: 'Recent' },
          { value: 'slow', title: 'Slow' },
          { value: 'failed', title: 'Failed' },
        ]}
      />
      {show === 'failed' ? (
        <FailedFlows />
      ) : (
        <EventFlows isSlow={show === 'slow'} onReset={() => choose(undefined)} />
      )}
    </div>
  );
}

function EventFlows({
  isSlow,
  onReset,
}: {
  readonly isSlow: boolean;
  readonly onReset: () => void;
}) {
  const { data, error, refetch } = useQuery({
    queryKey: ['recent-flows'],
    queryFn: ({ signal }) =>
      call('GET /api/v1/events', { query: { direction: 'backwards', limit: eventsRead }, signal }),
  });
  const [arrived, setArrived] = useState<readonly LiveEvent[]>([]);
  const show = (): void => {
    setArrived([]);
    void refetch();
  };
  const head = data === undefined ? undefined : (data.items[0]?.position ?? 'end');
  useFollow({}, head, (events) => {
    if (data?.items.length === 0) show();
    else setArrived((before) => [...events.toReversed(), ...before].slice(0, eventsRead));
  });
  const all = flowsOf(data?.items ?? []);
  const slow = all.filter(isSlowFlow);
  const flows = isSlow ? slow.toSorted((a, b) => b.durationMs - a.durationMs) : all;
  const changed = new Set(arrived.map(({ correlationId }) => correlationId));
  const fresh = flowsOf([...arrived, ...(data?.items ?? [])]).filter(
    (flow) => changed.has(flow.id) && (!isSlow || isSlowFlow(flow)),
  );
  return (
    <FlowPanel
      title={isSlow ? 'Slow flows' : 'Recent flows'}
      fresh={fresh.length}
      onFresh={show}
      aside={`${isSlow ? `${durationText(slowMs)} or longer, ` : ''}of the newest ${data?.items.length ?? eventsRead} events`}
    >
      {error !== null ? (
        <Failed error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={10} />
      ) : all.length === 0 ? (
        <Empty title="No flows yet" command="npm run millrace -- dev">
          A flow is everything that one request caused. This command runs Millrace with sample data:
        </Empty>
      ) : flows.length === 0 ? (
        <NoMatch onReset={onReset}>
          <p>No flow of these events took {durationText(slowMs)} or longer.</p>
        </NoMatch>
      ) : (
        <ul className="divide-y divide-line">
          {flows.map((flow) => (
            <FlowRow key={flow.id} flow={flow}>
              <span className="w-16 shrink-0 text-right text-xs">
                {durationText(flow.durationMs)}
              </span>
              <span className="hidden w-20 shrink-0 text-right text-xs text-soft sm:block">
                {flow.events} {flow.events === 1 ? 'event' : 'events'}
              </span>
            </FlowRow>
          ))}
        </ul>
      )}
    </FlowPanel>
  );
}

/** New flows are announced, and never move the others. */
function FlowPanel({
  fresh,
  onFresh,
  ...panel
}: ComponentProps<typeof Panel> & { readonly fresh: number; readonly onFresh: () => void }) {
  return (
    <div className="relative">
      {fresh > 0 ? <FreshButton count={fresh} onClick={onFresh} /> : null}
      <Panel {...panel} />
    </div>
  );
}

/** The flows with a dead letter, a dead message or a failed job. */
function FailedFlows() {
  const session = useSession();
  const { rows, error, isPending, retry, hasMore, fresh, showFresh } = useList({
    queryKey: ['failed-flows', session.name],
    load: async (_cursor, signal) => {
      const since = new Date(Date.now() - failedWithinMs).toISOString();
      const limit = failuresRead;
      const none = { items: [], cursor: undefined };
      const [letters, messages, jobs] = await Promise.all([
        call('GET /admin/dlq', { query: { since, limit }, signal }),
        allows(session, 'GET /admin/outbox')
          ? call('GET /admin/outbox', { query: { status: 'DEAD', since, limit }, signal })
          : none,
        allows(session, 'GET /api/v1/jobs')
          ? call('GET /api/v1/jobs', {
              query: { state: ['failed'], updatedFrom: since, limit },
              signal,
            })
          : none,
      ]);
      const failures: readonly Failure[] = [
        ...letters.items.map(({ correlationId, handler, tenant, createdAt }) => ({
          id: correlationId,
          type: handler,
          tenant,
          at: createdAt,
          what: 'dead letter',
        })),
        ...messages.items.map(({ id, correlationId, integrationType, tenantId, updatedAt }) => ({
          id: correlationId ?? id,
          type: integrationType,
          tenant: tenantId ?? '',
          at: updatedAt,
          what: 'dead message',
        })),
        ...jobs.items.map((job) => ({
          id: job.correlationId ?? job.id,
          type: job.type,
          tenant: job.tenant ?? '',
          at: job.updatedAt,
          what: 'failed job',
        })),
      ];
      const { cursor } =
        [letters, messages, jobs].find((page) => page.cursor !== undefined) ?? none;
      return { items: failedFlows(failures), cursor };
    },
    keyOf: flowId,
  });
  return (
    <FlowPanel
      title="Failed flows"
      fresh={fresh}
      onFresh={showFresh}
      aside={hasMore ? `only ${failuresRead} failures of each kind were read` : 'last 24 h'}
    >
      {error !== null ? (
        <Failed error={error} onRetry={retry} />
      ) : isPending ? (
        <Loading rows={10} />
      ) : rows.length === 0 ? (
        <Empty title="No flow failed">
          In the last 24 hours no event became a dead letter, and no message or job failed for good.
        </Empty>
      ) : (
        <ul className="divide-y divide-line">
          {rows.map((flow) => (
            <FlowRow key={flow.id} flow={flow}>
              <span className="flex shrink-0 flex-wrap gap-1 max-sm:order-1 max-sm:basis-full">
                {flow.failures.map(([what, count]) => (
                  <Badge key={what} tone="bad">
                    {count} {what}
                    {count === 1 ? '' : 's'}
                  </Badge>
                ))}
              </span>
            </FlowRow>
          ))}
        </ul>
      )}
    </FlowPanel>
  );
}

interface FlowHead {
  readonly id: string;
  readonly type: string;
  readonly tenant: string;
  readonly at: string;
}

const flowId = ({ id }: FlowHead): string => id;

function FlowRow({ flow, children }: { readonly flow: FlowHead; readonly children: ReactNode }) {
  return (
    <li>
      <Link
        to="/traces/$id"
        params={{ id: flow.id }}
        data-row=""
        className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 hover:bg-hover"
      >
        <span className="min-w-0 flex-1 basis-40">
          <span className="mono block truncate font-medium">{flow.type}</span>
          <span className="mono block truncate text-2xs text-soft">{flow.id}</span>
        </span>
        <span className="hidden shrink-0 text-xs text-soft sm:block">{flow.tenant}</span>
        {children}
        <span className="shrink-0 text-xs max-sm:basis-full sm:w-24 sm:text-right">
          <Ago at={flow.at} />
        </span>
      </Link>
    </li>
  );
}

interface Failure extends FlowHead {
  readonly what: string;
}

/** Newest first, with the number of failures by kind. */
function failedFlows(failures: readonly Failure[]) {
  const newestFirst = failures.toSorted((a, b) => (a.at < b.at ? 1 : -1));
  return [...Map.groupBy(newestFirst, ({ id }) => id).values()].flatMap((all) => {
    const [newest] = all;
    if (newest === undefined) return [];
    const kinds = Map.groupBy(all, ({ what }) => what);
    return [
      { ...newest, failures: [...kinds].map(([what, some]) => [what, some.length] as const) },
    ];
  });
}

interface Flow extends FlowHead {
  readonly events: number;
  /** Between the first and the last of the events that were read. */
  readonly durationMs: number;
}

const isSlowFlow = ({ durationMs }: Flow): boolean => durationMs >= slowMs;

/** Newest first, as the events. */
function flowsOf(events: readonly LiveEvent[]): readonly Flow[] {
  return [...Map.groupBy(events, ({ correlationId }) => correlationId)].flatMap(([id, all]) => {
    const first = all.at(-1);
    const last = all[0];
    if (first === undefined || last === undefined) return [];
    const { type, tenant } = first;
    const durationMs = Date.parse(last.recordedAt) - Date.parse(first.recordedAt);
    return [{ id, type, tenant, at: last.recordedAt, events: all.length, durationMs }];
  });
}
