// One flow: everything that a request caused, as a waterfall or as a list.

import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Bell, Cog, FileText, Send, SquareTerminal, type LucideIcon } from 'lucide-react';
import { useMemo } from 'react';
import { call } from '../lib/api.ts';
import { durationText } from '../lib/format.ts';
import { useShortcuts } from '../lib/keys.ts';
import { traceAxis, type TraceAxis } from '../lib/trace-axis.ts';
import {
  traceRows,
  traceSummary,
  withFailuresOnly,
  type Trace,
  type TraceNode,
  type TraceRow,
} from '../lib/trace-rows.ts';
import type { TraceSearch } from '../router.tsx';
import {
  Badge,
  Button,
  CopyButton,
  cx,
  Fact,
  Facts,
  PageTitle,
  StreamLink,
  Time,
} from '../ui/parts.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Sheet } from '../ui/sheet.tsx';

const icons: Readonly<Record<TraceNode['kind'], LucideIcon>> = {
  command: SquareTerminal,
  event: FileText,
  handler: Cog,
  delivery: Send,
  job: Bell,
};

const tones = { done: 'good', failed: 'bad', waiting: 'warn' } as const;
const bars = { done: 'bg-accent', failed: 'bg-bad', waiting: 'bg-warn' } as const;

export function TraceView() {
  const { id } = useParams({ from: '/traces/$id' });
  const search = useSearch({ from: '/traces/$id' });
  const navigate = useNavigate({ from: '/traces/$id' });
  const { data, error, refetch } = useQuery({
    queryKey: ['trace', id],
    queryFn: ({ signal }) =>
      call('GET /admin/traces/{correlationId}', { params: { correlationId: id }, signal }),
  });
  const setSearch = (change: Partial<TraceSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const all = useMemo(() => (data === undefined ? [] : traceRows(data)), [data]);
  const rows = search.only === 'failures' ? withFailuresOnly(all) : all;
  const selected = rows.findIndex(({ node }) => node.id === search.node);
  const select = (at: number): void =>
    setSearch({ node: rows[Math.max(0, Math.min(at, rows.length - 1))]?.node.id });
  useShortcuts({
    j: () => select(selected + 1),
    k: () => select(selected - 1),
    Escape: () => setSearch({ node: undefined }),
  });
  return (
    <div className="flex flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Trace">
        <span className="mono min-w-0 break-all text-soft">{id}</span>
        <CopyButton text={id} label="Copy the correlation id" />
      </PageTitle>
      {data === undefined ? (
        <div className="rounded-lg border border-line bg-panel">
          {error === null ? (
            <Loading rows={8} />
          ) : (
            <Failed error={error} onRetry={() => void refetch()} />
          )}
        </div>
      ) : (
        <>
          <Summary trace={data} rows={all} search={search} onChange={setSearch} />
          <Rows rows={rows} isList={search.view === 'list'} selected={selected} onSelect={select} />
          <NodeSheet row={rows[selected]} onClose={() => setSearch({ node: undefined })} />
        </>
      )}
    </div>
  );
}

function Summary({
  trace,
  rows,
  search,
  onChange,
}: {
  readonly trace: Trace;
  readonly rows: readonly TraceRow[];
  readonly search: TraceSearch;
  readonly onChange: (change: Partial<TraceSearch>) => void;
}) {
  const failed = rows.filter(({ state }) => state === 'failed').length;
  const waiting = rows.filter(({ state }) => state === 'waiting').length;
  const notes = [
    trace.complete ? '' : 'The latest events may be missing: the index is behind.',
    trace.truncated ? 'The flow has more nodes than are shown.' : '',
    trace.missing > 0 ? `${trace.missing} events of this flow were removed.` : '',
  ].filter((note) => note !== '');
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-xs">
      {trace.startedAt === null ? null : <Time at={trace.startedAt} />}
      <span className="text-soft">
        {durationText(trace.durationMs)} · {traceSummary(trace).join(' · ')}
      </span>
      {failed > 0 ? <Badge tone="bad">{failed} failed</Badge> : null}
      {waiting > 0 ? <Badge tone="warn">{waiting} waiting</Badge> : null}
      {failed + waiting === 0 ? <Badge tone="good">complete</Badge> : null}
      <div className="ml-auto flex gap-2">
        {failed > 0 ? (
          <Button
            aria-pressed={search.only === 'failures'}
            look={search.only === 'failures' ? 'primary' : 'plain'}
            onClick={() => onChange({ only: search.only === 'failures' ? undefined : 'failures' })}
          >
            Only failures
          </Button>
        ) : null}
        <div
          role="group"
          aria-label="View"
          className="flex overflow-hidden rounded-md border border-line"
        >
          {(['waterfall', 'list'] as const).map((view) => {
            const isChosen = (search.view ?? 'waterfall') === view;
            return (
              <button
                key={view}
                type="button"
                aria-pressed={isChosen}
                onClick={() => onChange({ view: view === 'list' ? 'list' : undefined })}
                className={cx(
                  'h-8 px-3 capitalize',
                  isChosen ? 'bg-accent-wash font-medium text-accent' : 'bg-panel hover:bg-hover',
                )}
              >
                {view}
              </button>
            );
          })}
        </div>
      </div>
      {notes.map((note) => (
        <p key={note} className="basis-full text-warn">
          {note}
        </p>
      ))}
    </div>
  );
}

function Rows({
  rows,
  isList,
  selected,
  onSelect,
}: {
  readonly rows: readonly TraceRow[];
  readonly isList: boolean;
  readonly selected: number;
  readonly onSelect: (at: number) => void;
}) {
  const axis = useMemo(() => traceAxis(rows.flatMap(({ interval }) => interval ?? [])), [rows]);
  const places = useMemo(() => placesOf(rows), [rows]);
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-panel">
      {axis.gaps.length === 0 || isList ? null : (
        <p className="border-b border-line px-4 py-2 text-2xs text-soft">
          Idle times are folded:{' '}
          {axis.gaps.map(({ fromMs, toMs }) => durationText(toMs - fromMs)).join(', ')}
        </p>
      )}
      <ul className="divide-y divide-line">
        {rows.map((row, index) => {
          const Icon = icons[row.node.kind];
          return (
            <li key={row.node.id}>
              <button
                type="button"
                aria-current={index === selected}
                onClick={() => onSelect(index)}
                className={cx(
                  'flex min-h-9 w-full items-center gap-3 px-4 py-1.5 text-left hover:bg-hover',
                  index === selected && 'bg-accent-wash hover:bg-accent-wash',
                )}
              >
                <span
                  className={cx(
                    'flex min-w-0 items-center gap-2',
                    isList ? 'flex-1' : 'flex-1 lg:w-[26rem] lg:flex-none',
                  )}
                >
                  <span
                    aria-hidden
                    className="shrink-0"
                    style={{ width: Math.min(row.node.depth, 12) * 14 }}
                  />
                  <Icon size={14} aria-label={row.node.kind} className="shrink-0 text-soft" />
                  <span className="mono truncate" title={row.title}>
                    {row.title}
                  </span>
                  <span className="ml-auto shrink-0">
                    {row.node.kind === 'event' ? (
                      <span className="mono text-2xs text-soft">{row.about}</span>
                    ) : (
                      <Badge tone={tones[row.state]}>{row.about}</Badge>
                    )}
                  </span>
                </span>
                {isList ? (
                  <span className="w-28 shrink-0 text-right text-xs text-soft">
                    {row.node.offsetMs === null ? '–' : `+${durationText(row.node.offsetMs)}`}
                  </span>
                ) : (
                  <Bar row={row} axis={axis} placeMs={places.get(row.node.id) ?? 0} />
                )}
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** A node without a time stands where its cause ended. */
function placesOf(rows: readonly TraceRow[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const { node, interval } of rows) {
    places.set(node.id, interval?.toMs ?? places.get(node.parent ?? '') ?? 0);
  }
  return places;
}

function Bar({
  row: { interval, state },
  axis,
  placeMs,
}: {
  readonly row: TraceRow;
  readonly axis: TraceAxis;
  readonly placeMs: number;
}) {
  const left = axis.at(interval?.fromMs ?? placeMs);
  const width = interval === undefined ? 0 : axis.at(interval.toMs) - left;
  const length = interval === undefined ? undefined : interval.toMs - interval.fromMs;
  return (
    <span className="relative hidden h-5 min-w-0 flex-1 lg:block">
      {axis.gaps.map((gap) => (
        <span
          key={gap.fromMs}
          className="absolute inset-y-0 border-x border-dashed border-line bg-sunken"
          style={{ left: `${gap.left}%`, width: `${gap.width}%` }}
        />
      ))}
      {interval === undefined ? (
        <span
          title="The time is not recorded"
          className="absolute top-1.5 size-2 rounded-full border border-strong bg-panel"
          style={{ left: `min(${left}%, calc(100% - 0.5rem))` }}
        />
      ) : (
        <span
          className={cx('absolute top-1 h-3 min-w-1.5 rounded-sm', bars[state])}
          style={{ left: `min(${left}%, calc(100% - 0.375rem))`, width: `${width}%` }}
        />
      )}
      {length === undefined || length < 1 ? null : (
        <span
          className="absolute top-0.5 text-2xs whitespace-nowrap text-soft"
          style={
            left + width > 85
              ? { right: `calc(${100 - left}% + 0.4rem)` }
              : { left: `calc(${left + width}% + 0.6rem)` }
          }
        >
          {durationText(length)}
        </span>
      )}
    </span>
  );
}

function NodeSheet({
  row,
  onClose,
}: {
  readonly row: TraceRow | undefined;
  readonly onClose: () => void;
}) {
  return (
    <Sheet
      isOpen={row !== undefined}
      onClose={onClose}
      title={<span className="mono">{row?.title ?? ''}</span>}
    >
      {row === undefined ? null : <NodeDetail row={row} />}
    </Sheet>
  );
}

function NodeDetail({ row: { node, state, about } }: { readonly row: TraceRow }) {
  const error = 'error' in node ? node.error : null;
  const { kind, id, parent: _parent, depth: _depth, offsetMs, ...rest } = node;
  const facts = Object.entries(rest).filter(
    ([name, value]) => value !== null && !['error', 'stream'].includes(name),
  );
  return (
    <div className="flex flex-col gap-4">
      <div className="flex items-center gap-2">
        <Badge>{kind}</Badge>
        <Badge tone={tones[state]}>{about}</Badge>
        {offsetMs === null ? null : (
          <span className="text-xs text-soft">+{durationText(offsetMs)}</span>
        )}
      </div>
      {error === null ? null : (
        <pre className="mono rounded-md bg-bad-wash p-3 text-xs break-words whitespace-pre-wrap text-bad">
          {error}
        </pre>
      )}
      <Facts>
        {'stream' in node ? (
          <Fact name="Stream">
            <StreamLink stream={node.stream} />
          </Fact>
        ) : null}
        {facts.map(([name, value]) => (
          <Fact key={name} name={nameOf(name)}>
            {/(?:At|^at)$/.test(name) ? (
              <Time at={String(value)} />
            ) : (
              <span className="mono break-all">{String(value)}</span>
            )}
          </Fact>
        ))}
        <Fact name="Node">
          <span className="mono break-all text-soft">{id}</span>
          <CopyButton text={id} label="Copy the id of the node" />
        </Fact>
      </Facts>
    </div>
  );
}

/** `attemptsMax` → `Attempts max`. */
function nameOf(field: string): string {
  const words = field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
