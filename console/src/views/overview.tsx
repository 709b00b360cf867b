// The overview: how much happens, what fails, and which engine has which role.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Navigate } from '@tanstack/react-router';
import {
  CircleCheck,
  CirclePause,
  OctagonAlert,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react';
import { useEffect, type ReactNode } from 'react';
import { attentionOf, type Attention } from '../lib/attention.ts';
import { call, type ResponseOf } from '../lib/api.ts';
import { countText, durationText, rateText } from '../lib/format.ts';
import { focusRow, useShortcuts } from '../lib/keys.ts';
import { live } from '../lib/live.ts';
import { useSession } from '../lib/session.ts';
import { Badge, cx, PageTitle, Panel } from '../ui/parts.tsx';
import { Sparkline, type ChartPoint } from '../ui/sparkline.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { viewsFor } from '../views.ts';

type OverviewData = ResponseOf<'GET /admin/overview'>;
type Point = OverviewData['series'][number];

const windowMs = 900_000;

/** The first page; sessions that may not see it start with another view. */
export function OverviewView() {
  const [first] = viewsFor(useSession());
  if (first === undefined) {
    return (
      <Empty
        title="This session may not see any view"
        command="millrace token create ops --scope admin"
      />
    );
  }
  return first.path === '/' ? <Overview /> : <Navigate to={first.path} replace />;
}

function Overview() {
  const client = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => call('GET /admin/overview', { signal }),
  });
  const system = useQuery({
    queryKey: ['system'],
    queryFn: ({ signal }) => call('GET /admin/system', { signal }),
  });
  useEffect(
    () => live.watchOverview(() => void client.invalidateQueries({ queryKey: ['overview'] })),
    [client],
  );
  useShortcuts({ j: () => focusRow(1), k: () => focusRow(-1) });
  const roles = system.data?.roles ?? [];
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Overview">
        <span className="text-xs text-soft">last 15 minutes</span>
      </PageTitle>
      {data === undefined ? (
        <Panel>
          {error === null ? (
            <Loading rows={8} />
          ) : (
            <Failed error={error} onRetry={() => void refetch()} />
          )}
        </Panel>
      ) : (
        <>
          <Numbers overview={data} />
          <NeedsAttention items={attentionOf(data, roles)} />
          <div className="grid gap-4 xl:grid-cols-2">
            <Subscriptions overview={data} />
            <Engines roles={roles} error={system.error} />
          </div>
        </>
      )}
    </div>
  );
}

function Numbers({ overview }: { readonly overview: OverviewData }) {
  const { series, subscriptions, outbox, jobs } = overview;
  const toMs = Date.parse(overview.at);
  const last = series.at(-1);
  const behind = subscriptions.filter(({ seconds }) => seconds >= 1).length;
  // Not of the last sample: after a start there is none.
  const failures = Object.values(overview.failures).reduce((sum, count) => sum + count, 0);
  const waiting = last?.outbox ?? 0;
  const chart = (label: string, valueOf: (point: Point) => number | undefined, isBad = false) => (
    <Sparkline
      label={label}
      points={pointsOf(series, valueOf)}
      fromMs={toMs - windowMs}
      toMs={toMs}
      isBad={isBad}
    />
  );
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 md:grid-cols-3 xl:grid-cols-5 max-md:[&>:last-child:nth-child(odd)]:col-span-2">
      <Tile
        title="Events"
        value={last?.eventsPerSecond === undefined ? '–' : rateText(last.eventsPerSecond)}
        unit="per second"
        chart={chart('Events per second, last 15 minutes', (point) => point.eventsPerSecond)}
      />
      <Tile
        title="Lag"
        value={lagText(last?.lagSeconds ?? 0)}
        unit={behind === 0 ? 'all are current' : `${behind} of ${subscriptions.length} behind`}
        isBad={(last?.lagSeconds ?? 0) >= 60}
        chart={chart(
          'Largest lag in seconds',
          (point) => point.lagSeconds,
          (last?.lagSeconds ?? 0) >= 60,
        )}
      />
      <Tile
        title="Failures"
        value={countText(failures)}
        unit={failures === 0 ? 'nothing failed' : 'waiting for a decision'}
        isBad={failures > 0}
        chart={chart('Failures', (point) => point.failures, failures > 0)}
      />
      {outbox === undefined ? null : (
        <Tile
          title="Outbox"
          value={countText(waiting)}
          unit={`to send · ${countText(outbox.counts.SENT)} sent`}
          chart={chart('Messages to send', (point) => point.outbox)}
        />
      )}
      {jobs === undefined ? null : (
        <Tile
          title="Jobs"
          value={countText(jobs.running)}
          unit={`running · ${countText(jobs.waiting)} waiting`}
          chart={chart('Jobs waiting and running', (point) => point.jobs)}
        />
      )}
    </div>
  );
}

/** Less than a second is the normal delay. */
function lagText(seconds: number): string {
  return seconds < 1 ? '0 s' : durationText(seconds * 1_000);
}

function pointsOf(
  series: readonly Point[],
  valueOf: (point: Point) => number | undefined,
): readonly ChartPoint[] {
  return series.flatMap((point) => {
    const value = valueOf(point);
    return value === undefined ? [] : [{ atMs: Date.parse(point.at), value }];
  });
}

function Tile({
  title,
  value,
  unit,
  chart,
  isBad = false,
}: {
  readonly title: string;
  readonly value: string;
  readonly unit: string;
  readonly chart: ReactNode;
  readonly isBad?: boolean;
}) {
  return (
    <section aria-label={title} className="rounded-lg border border-line bg-panel px-4 pt-3 pb-2">
      <h2 className="text-xs text-soft">{title}</h2>
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span
          className={cx('text-2xl leading-8 font-semibold tracking-tight', isBad && 'text-bad')}
        >
          {value}
        </span>
        <span className="truncate text-2xs text-soft">{unit}</span>
      </p>
      <div className="mt-1">{chart}</div>
    </section>
  );
}

const attentionIcons: Readonly<Record<Attention['level'], readonly [LucideIcon, string]>> = {
  failing: [OctagonAlert, 'text-bad'],
  warning: [TriangleAlert, 'text-warn'],
  paused: [CirclePause, 'text-soft'],
};

function NeedsAttention({ items }: { readonly items: readonly Attention[] }) {
  const allowed = new Set(viewsFor(useSession()).map(({ path }) => path));
  return (
    <Panel title="Needs attention" aside={items.length === 0 ? undefined : `${items.length}`}>
      {items.length === 0 ? (
        <p className="flex items-center gap-2 px-4 py-4 text-xs text-soft">
          <CircleCheck size={16} aria-hidden className="text-good" />
          Nothing fails, and nothing waits for a decision.
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {items.map(({ key, level, subject, text, view }) => {
            const [Icon, tone] = attentionIcons[level];
            return (
              <li key={key} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5">
                <Icon size={15} aria-label={level} className={cx('shrink-0', tone)} />
                <span className="mono font-medium break-all">{subject}</span>
                <span className="min-w-0 flex-1 basis-60 text-xs text-soft">{text}</span>
                {!allowed.has(view) ? null : (
                  <Link
                    to={view}
                    data-row=""
                    className="rounded-md border border-line px-2.5 py-1 text-xs hover:bg-hover"
                  >
                    Show <span className="sr-only">{subject}</span>
                  </Link>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}

function Subscriptions({ overview: { subscriptions } }: { readonly overview: OverviewData }) {
  const sorted = subscriptions.toSorted(
    (a, b) =>
      b.deadLetters - a.deadLetters ||
      b.seconds - a.seconds ||
      (a.subscription < b.subscription ? -1 : 1),
  );
  return (
    <Panel title="Subscriptions" aside={`${subscriptions.length}`}>
      {sorted.length === 0 ? (
        <p className="px-4 py-4 text-xs text-soft">No module has registered a subscription.</p>
      ) : (
        <div
          className="max-h-96 overflow-auto"
          tabIndex={0}
          role="region"
          aria-label="Subscriptions"
        >
          <table className="w-full text-left text-xs">
            <thead className="sticky top-0 bg-panel text-soft">
              <tr>
                <th className="px-4 py-2 font-normal">Name</th>
                <th className="px-2 py-2 font-normal">State</th>
                <th className="px-2 py-2 text-right font-normal">Lag</th>
                <th className="px-4 py-2 text-right font-normal">Failed</th>
              </tr>
            </thead>
            <tbody className="divide-y divide-line border-t border-line">
              {sorted.map(({ subscription, state, seconds, deadLetters, waiting }) => (
                <tr key={subscription}>
                  <td className="mono px-4 py-1.5 break-all">{subscription}</td>
                  <td className="px-2 py-1.5">
                    <Badge
                      tone={state === 'running' ? 'good' : state === 'paused' ? 'warn' : 'neutral'}
                    >
                      {state}
                    </Badge>
                  </td>
                  <td className="px-2 py-1.5 text-right whitespace-nowrap">
                    {seconds < 1 ? (
                      <span className="text-soft">current</span>
                    ) : (
                      durationText(seconds * 1_000)
                    )}
                  </td>
                  <td className="px-4 py-1.5 text-right whitespace-nowrap">
                    {deadLetters === 0 ? (
                      <span className="text-soft">0</span>
                    ) : (
                      <span
                        className="font-medium text-bad"
                        title={`${countText(waiting)} events of their streams wait`}
                      >
                        {countText(deadLetters)}
                      </span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

type Role = ResponseOf<'GET /admin/system'>['roles'][number];

function Engines({
  roles,
  error,
}: {
  readonly roles: readonly Role[];
  readonly error: Error | null;
}) {
  return (
    <Panel title="Engines" aside="role → engine">
      {error === null ? (
        <div className="max-h-96 overflow-auto" tabIndex={0} role="region" aria-label="Engines">
          <table className="w-full text-left text-xs">
            <thead className="sticky top-0 bg-panel text-soft">
              <tr>
                <th className="px-4 py-2 font-normal">Role</th>
                <th className="px-2 py-2 font-normal">Engine</th>
                <th className="px-4 py-2 font-normal">URL</th>
              </tr>
            </thead>
            <tbody className="divide-y divide-line border-t border-line">
              {roles.map(({ role, title, engine, url, survives, warning }) => (
                <tr key={role} title={survives}>
                  <td className="px-4 py-1.5 whitespace-nowrap">{title}</td>
                  <td className="px-2 py-1.5 whitespace-nowrap">
                    {engine === undefined ? <span className="text-soft">off</span> : engine}
                    {warning === undefined ? null : (
                      <TriangleAlert
                        size={13}
                        aria-label={warning}
                        className="ml-1.5 inline text-warn"
                      />
                    )}
                  </td>
                  <td className="mono px-4 py-1.5 break-all text-soft">{url ?? '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Failed error={error} />
      )}
    </Panel>
  );
}
