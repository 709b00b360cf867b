// One flow: everything that a request caused, as a waterfall, as a list or as sentences.

import { useQuery } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { useMemo, useState, type ReactNode } from 'react';
import { call } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { durationText } from '../lib/format.ts';
import { useShortcuts } from '../lib/keys.ts';
import { traceCommands } from '../lib/shell-commands.ts';
import {
  filterRows,
  foldedAtFirst,
  kindNames,
  traceRows,
  traceSummary,
  unfolded,
  type Trace,
  type TraceNode,
  type TraceRow,
} from '../lib/trace-rows.ts';
import type { TraceSearch } from '../router.tsx';
import { CopyAs } from '../ui/copy-as.tsx';
import { Choices, TextFilters } from '../ui/filters.tsx';
import { Badge, Button, CopyButton, cx, PageTitle, Time } from '../ui/parts.tsx';
import { Failed, Loading, NoMatch } from '../ui/states.tsx';
import { TraceExplain } from './trace-explain.tsx';
import { NodeSheet } from './trace-node.tsx';
import { TraceRows } from './trace-rows.tsx';

export function TraceView() {
  const { id } = useParams({ from: '/traces/$id' });
  const search = useSearch({ from: '/traces/$id' });
  const setSearch = useSearchChange<TraceSearch>('node');
  const { data, error, refetch } = useQuery({
    queryKey: ['trace', id],
    queryFn: ({ signal }) =>
      call('GET /admin/traces/{correlationId}', { params: { correlationId: id }, signal }),
  });
  const all = useMemo(() => (data === undefined ? [] : traceRows(data)), [data]);
  const { only, kind, text, view, node } = search;
  const isFiltered = (only ?? kind ?? text) !== undefined;
  const rows = useMemo(
    () => filterRows(all, { isFailed: only === 'failures', kind, text }),
    [all, only, kind, text],
  );
  const folds = useFolds(rows, isFiltered || search.all === true, node);
  const shown = useMemo(() => unfolded(rows, folds.folded), [rows, folds.folded]);
  const selected = shown.findIndex(({ row }) => row.node.id === node);
  const select = (at: number): void =>
    setSearch({ node: shown[Math.max(0, Math.min(at, shown.length - 1))]?.row.node.id });
  useShortcuts({
    j: () => select(selected + 1),
    k: () => select(selected - 1),
    o: () => node !== undefined && folds.toggle(node),
    e: () => setSearch({ view: view === 'explain' ? undefined : 'explain' }),
    Escape: () => setSearch({ node: undefined }),
  });
  const row = all.find((each) => each.node.id === node);
  return (
    <div className="flex flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Trace" name={id}>
        <span className="mono min-w-0 break-all text-soft">{id}</span>
        <CopyButton text={id} label="Copy the correlation id" />
        <div className="sm:ml-auto">
          <CopyAs commands={traceCommands(id)} />
        </div>
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
          <Summary trace={data} rows={all} view={view} onChange={setSearch} />
          {view === 'explain' ? (
            <TraceExplain trace={data} row={row} onSelect={(next) => setSearch({ node: next })} />
          ) : (
            <>
              <RowFilters rows={all} search={search} onChange={setSearch}>
                {folds.count === 0 && search.all !== true ? null : (
                  <Button
                    onClick={() => setSearch({ all: search.all === true ? undefined : true })}
                  >
                    {search.all === true ? 'Fold' : 'Unfold all'}
                  </Button>
                )}
              </RowFilters>
              {rows.length === 0 ? (
                <div className="rounded-lg border border-line bg-panel">
                  <NoMatch
                    onReset={() => setSearch({ only: undefined, kind: undefined, text: undefined })}
                  />
                </div>
              ) : (
                <TraceRows
                  shown={shown}
                  isList={view === 'list'}
                  selected={selected}
                  onSelect={select}
                  onFold={folds.toggle}
                />
              )}
              <NodeSheet
                row={row}
                onExplain={() => setSearch({ view: 'explain' })}
                onClose={() => setSearch({ node: undefined })}
              />
            </>
          )}
        </>
      )}
    </div>
  );
}

/** A large flow is folded when it is opened; the selected node is always visible. */
function useFolds(rows: readonly TraceRow[], isOpen: boolean, node: string | undefined) {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const atFirst = useMemo(() => (isOpen ? new Set<string>() : foldedAtFirst(rows)), [rows, isOpen]);
  const folded = useMemo(() => {
    const result = new Set(atFirst);
    for (const id of changed) if (!result.delete(id)) result.add(id);
    const parents = new Map(rows.map((row) => [row.node.id, row.node.parent]));
    let above = parents.get(node ?? '') ?? null;
    while (above !== null) {
      result.delete(above);
      above = parents.get(above) ?? null;
    }
    return result;
  }, [atFirst, changed, rows, node]);
  return {
    folded,
    count: atFirst.size,
    toggle: (id: string): void =>
      setChanged((before) => {
        const after = new Set(before);
        if (!after.delete(id)) after.add(id);
        return after;
      }),
  };
}

const views = ['waterfall', 'list', 'explain'] as const;

function Summary({
  trace,
  rows,
  view,
  onChange,
}: {
  readonly trace: Trace;
  readonly rows: readonly TraceRow[];
  readonly view: TraceSearch['view'];
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
      <div className="flex sm:ml-auto">
        <div
          role="group"
          aria-label="View"
          className="flex overflow-hidden rounded-md border border-line"
        >
          {views.map((each) => {
            const isChosen = (view ?? 'waterfall') === each;
            return (
              <button
                key={each}
                type="button"
                aria-pressed={isChosen}
                onClick={() => onChange({ view: each === 'waterfall' ? undefined : each })}
                className={cx(
                  'h-8 px-3 capitalize',
                  isChosen ? 'bg-accent-wash font-medium text-accent' : 'bg-panel hover:bg-hover',
                )}
              >
                {each}
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

const textField = [{ name: 'text', title: 'Text', example: 'a name, an id or an error' }] as const;

/** Filters inside of one flow; the causes of a matching row stay. */
function RowFilters({
  rows,
  search: { only, kind, text },
  onChange,
  children,
}: {
  readonly rows: readonly TraceRow[];
  readonly search: TraceSearch;
  readonly onChange: (change: Partial<TraceSearch>) => void;
  readonly children: ReactNode;
}) {
  const counts = new Map<TraceNode['kind'], number>();
  for (const { node } of rows) counts.set(node.kind, (counts.get(node.kind) ?? 0) + 1);
  const failed = rows.filter(({ state }) => state === 'failed').length;
  const isOnly = only === 'failures';
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Choices
        label="Kind"
        value={kind}
        onChange={(value) => onChange({ kind: value })}
        choices={[
          { value: undefined, title: 'All', count: rows.length },
          ...[...counts].map(([value, count]) => ({ value, title: kindNames[value], count })),
        ]}
      />
      <div className="flex min-w-60 flex-1">
        <TextFilters fields={textField} values={{ text }} onChange={(values) => onChange(values)} />
      </div>
      {failed > 0 ? (
        <Button
          aria-pressed={isOnly}
          look={isOnly ? 'primary' : 'plain'}
          onClick={() => onChange({ only: isOnly ? undefined : 'failures' })}
        >
          Only failures
        </Button>
      ) : null}
      {children}
    </div>
  );
}
