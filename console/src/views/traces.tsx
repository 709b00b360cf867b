// Traces: open one by its id, or one of the flows of the newest events.

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import { call } from '../lib/api.ts';
import type { LiveEvent } from '../lib/live.ts';
import { Ago, Button, PageTitle, Panel } from '../ui/parts.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';

const eventsRead = 500;

export function TracesView() {
  const navigate = useNavigate();
  const [id, setId] = useState('');
  const { data, error, refetch } = useQuery({
    queryKey: ['recent-flows'],
    queryFn: ({ signal }) =>
      call('GET /api/v1/events', { query: { direction: 'backwards', limit: eventsRead }, signal }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (id.trim() !== '') void navigate({ to: '/traces/$id', params: { id: id.trim() } });
  };
  const flows = flowsOf(data?.items ?? []);
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-4 p-4 sm:p-6">
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
      <Panel
        title="Recent flows"
        aside={`of the newest ${data?.items.length ?? eventsRead} events`}
      >
        {error !== null ? (
          <Failed error={error} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Loading rows={10} />
        ) : flows.length === 0 ? (
          <Empty title="No flows yet" command="npm run millrace -- dev">
            A flow is everything that one request caused. This command runs Millrace with sample
            data:
          </Empty>
        ) : (
          <ul className="divide-y divide-line">
            {flows.map((flow) => (
              <li key={flow.id}>
                <Link
                  to="/traces/$id"
                  params={{ id: flow.id }}
                  className="flex items-center gap-4 px-4 py-2.5 hover:bg-hover"
                >
                  <span className="min-w-0 flex-1">
                    <span className="mono block truncate font-medium">{flow.type}</span>
                    <span className="mono block truncate text-2xs text-soft">{flow.id}</span>
                  </span>
                  <span className="hidden shrink-0 text-xs text-soft sm:block">{flow.tenant}</span>
                  <span className="w-20 shrink-0 text-right text-xs text-soft">
                    {flow.events} {flow.events === 1 ? 'event' : 'events'}
                  </span>
                  <span className="w-24 shrink-0 text-right text-xs">
                    <Ago at={flow.at} />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </div>
  );
}

interface Flow {
  readonly id: string;
  /** The first event that was read. */
  readonly type: string;
  readonly tenant: string;
  readonly at: string;
  readonly events: number;
}

/** Newest first, as the events. */
function flowsOf(events: readonly LiveEvent[]): readonly Flow[] {
  return [...Map.groupBy(events, ({ correlationId }) => correlationId)].flatMap(([id, all]) => {
    const first = all.at(-1);
    const last = all[0];
    if (first === undefined || last === undefined) return [];
    return [
      { id, type: first.type, tenant: first.tenant, at: last.recordedAt, events: all.length },
    ];
  });
}
