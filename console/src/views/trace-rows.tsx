// The rows of a flow: a waterfall over a folded time axis, or a list. Only the visible rows are in the page.

import { useVirtualizer } from '@tanstack/react-virtual';
import {
  Bell,
  ChevronRight,
  Cog,
  FileText,
  Megaphone,
  Route,
  Send,
  SquareTerminal,
  Wrench,
  type LucideIcon,
} from 'lucide-react';
import { useEffect, useMemo, useRef } from 'react';
import { durationText } from '../lib/format.ts';
import { traceAxis, type TraceAxis } from '../lib/trace-axis.ts';
import { kindNames, type ShownRow, type TraceNode, type TraceRow } from '../lib/trace-rows.ts';
import { Badge, cx } from '../ui/parts.tsx';
import { stateTones } from './trace-node.tsx';

const icons: Readonly<Record<TraceNode['kind'], LucideIcon>> = {
  command: SquareTerminal,
  event: FileText,
  handler: Cog,
  delivery: Send,
  job: Bell,
  task: Wrench,
  message: Megaphone,
  saga: Route,
};

const bars = { done: 'bg-accent', failed: 'bg-bad', waiting: 'bg-warn' } as const;
const rowHeight = 36;

export function TraceRows({
  shown,
  isList,
  selected,
  onSelect,
  onFold,
}: {
  readonly shown: readonly ShownRow[];
  readonly isList: boolean;
  readonly selected: number;
  readonly onSelect: (at: number) => void;
  readonly onFold: (node: string) => void;
}) {
  const all = useMemo(() => shown.map(({ row }) => row), [shown]);
  const axis = useMemo(() => traceAxis(all.flatMap(({ interval }) => interval ?? [])), [all]);
  const places = useMemo(() => placesOf(all), [all]);
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    getItemKey: (at) => shown[at]?.row.node.id ?? at,
    overscan: 12,
  });
  useEffect(() => {
    if (selected >= 0) rows.scrollToIndex(selected, { align: 'auto' });
  }, [selected, rows]);
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-panel">
      {axis.gaps.length === 0 || isList ? null : (
        <p className="border-b border-line px-4 py-2 text-2xs text-soft">
          Idle times are folded:{' '}
          {axis.gaps.map(({ fromMs, toMs }) => durationText(toMs - fromMs)).join(', ')}
        </p>
      )}
      <div ref={box} className="max-h-[max(20rem,calc(100dvh-18rem))] overflow-y-auto">
        <ul className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, key, start }) => {
            const entry = shown[index];
            if (entry === undefined) return null;
            const { row, hidden } = entry;
            const Icon = icons[row.node.kind];
            const isSelected = index === selected;
            return (
              <li
                key={key}
                className={cx(
                  'absolute inset-x-0 flex items-center border-b border-line pl-2',
                  isSelected ? 'bg-accent-wash' : 'hover:bg-hover',
                )}
                style={{ height: rowHeight, transform: `translateY(${start}px)` }}
              >
                <span
                  aria-hidden
                  className="shrink-0"
                  style={{ width: `min(${Math.min(row.node.depth, 12) * 14}px, 24vw)` }}
                />
                {hidden === undefined ? (
                  <span aria-hidden className="w-6 shrink-0" />
                ) : (
                  <button
                    type="button"
                    aria-label={hidden > 0 ? `Unfold ${row.title}` : `Fold ${row.title}`}
                    aria-expanded={hidden === 0}
                    onClick={() => onFold(row.node.id)}
                    className="flex size-6 shrink-0 items-center justify-center rounded text-soft hover:bg-hover hover:text-text"
                  >
                    <ChevronRight
                      size={13}
                      aria-hidden
                      className={cx('transition-transform', hidden === 0 && 'rotate-90')}
                    />
                  </button>
                )}
                <button
                  type="button"
                  aria-current={isSelected}
                  onClick={() => onSelect(index)}
                  className="flex h-full min-w-0 flex-1 items-center gap-3 pr-4 text-left"
                >
                  <span
                    className={cx(
                      'flex min-w-0 items-center gap-2',
                      isList ? 'flex-1' : 'flex-1 lg:flex-none',
                    )}
                    style={
                      isList
                        ? undefined
                        : { width: `calc(24rem - ${Math.min(row.node.depth, 12) * 14}px)` }
                    }
                  >
                    <Icon
                      size={14}
                      aria-label={kindNames[row.node.kind]}
                      className="shrink-0 text-soft"
                    />
                    <span className="mono truncate" title={row.title}>
                      {row.title}
                    </span>
                    {hidden === undefined || hidden === 0 ? null : (
                      <span className="shrink-0 text-2xs whitespace-nowrap text-soft">
                        +{hidden}
                      </span>
                    )}
                    <span className="ml-auto shrink-0">
                      {row.node.kind === 'event' ? (
                        <span className="mono text-2xs text-soft">{row.about}</span>
                      ) : (
                        <Badge tone={stateTones[row.state]}>{row.about}</Badge>
                      )}
                    </span>
                  </span>
                  {isList ? (
                    <span className="w-14 shrink-0 text-right text-xs text-soft sm:w-28">
                      {row.node.offsetMs === null
                        ? '–'
                        : row.node.offsetMs < 1
                          ? '+0 ms'
                          : `+${durationText(row.node.offsetMs)}`}
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
