// A list view: title, filters, one table for all views with its states, and the keys to move in it.

import { ArrowUp } from 'lucide-react';
import type { ReactNode } from 'react';
import { focusRow, useShortcuts } from '../lib/keys.ts';
import type { List } from '../lib/list.ts';
import { breakable, cx, PageTitle } from './parts.tsx';
import { Failed, Loading, MoreRows, NoMatch } from './states.tsx';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly isRight?: boolean;
  /** Not shown on narrow screens. */
  readonly isExtra?: boolean;
}

interface Rows<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** The key of the open row. */
  readonly open?: string | undefined;
  /** Undefined: rows cannot be opened. */
  readonly onOpen?: ((key: string | undefined) => void) | undefined;
}

interface Filtered {
  readonly isFiltered?: boolean;
  readonly onReset?: () => void;
}

export function ListView<Row>({
  title,
  aside,
  filters,
  children,
  ...rest
}: Rows<Row> &
  Filtered & {
    readonly title: string;
    readonly aside?: ReactNode;
    readonly filters?: ReactNode;
    readonly list: List<Row>;
    readonly empty: ReactNode;
    readonly children?: ReactNode;
  }) {
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title={title}>
        <span className="text-xs text-soft">{aside}</span>
      </PageTitle>
      {filters}
      <ListBox {...rest} />
      {children}
    </div>
  );
}

/** The table of a list in its frame, or the state of the list. */
export function ListBox<Row>({
  list,
  empty,
  isFiltered = false,
  onReset,
  ...table
}: Rows<Row> & Filtered & { readonly list: List<Row>; readonly empty: ReactNode }) {
  const { rows } = list;
  const { keyOf, open, onOpen } = table;
  const at = rows.findIndex((row) => keyOf(row) === open);
  const step = (by: number): void => {
    if (onOpen === undefined) return focusRow(by);
    const next = rows[Math.max(0, Math.min(at + by, rows.length - 1))];
    if (next !== undefined) onOpen(keyOf(next));
  };
  useShortcuts({
    j: () => step(1),
    k: () => step(-1),
    ...(open === undefined ? {} : { Escape: () => onOpen?.(undefined) }),
  });
  return (
    <>
      <div className="relative overflow-hidden rounded-lg border border-line bg-panel">
        {list.fresh > 0 ? <FreshButton count={list.fresh} onClick={list.showFresh} /> : null}
        {list.error !== null ? (
          <Failed error={list.error} onRetry={list.retry} />
        ) : list.isPending ? (
          <Loading rows={8} />
        ) : rows.length === 0 ? (
          isFiltered ? (
            <NoMatch onReset={onReset ?? (() => undefined)} />
          ) : (
            empty
          )
        ) : (
          <Table {...table} rows={rows} />
        )}
      </div>
      <MoreRows page={list} />
    </>
  );
}

/** Announces new rows above a list. */
export function FreshButton({
  count,
  onClick,
}: {
  readonly count: number;
  readonly onClick: () => void;
}) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="absolute top-1.5 left-1/2 z-20 flex h-6 -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 text-xs font-medium text-on-accent shadow-float"
    >
      <ArrowUp size={13} aria-hidden />
      {count} new
    </button>
  );
}

export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  open,
  onOpen,
}: Rows<Row> & { readonly rows: readonly Row[] }) {
  const lastNarrow = columns.findLastIndex(({ isExtra }) => isExtra !== true);
  const place = ({ isRight, isExtra }: Column<Row>, at: number): string =>
    cx(
      at === 0 ? 'pr-2 pl-4' : at === columns.length - 1 ? 'pr-4 pl-2' : 'px-2',
      at === lastNarrow && 'max-md:pr-4',
      isRight === true && 'text-right',
      isExtra === true && 'max-md:hidden',
    );
  return (
    <table aria-label={label} className="w-full text-left text-xs">
      <thead className="text-2xs text-soft">
        <tr>
          {columns.map((column, at) => (
            <th key={column.title} className={cx('h-9 font-normal', place(column, at))}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody className="divide-y divide-line border-t border-line">
        {rows.map((row) => {
          const key = keyOf(row);
          const isOpen = key === open;
          return (
            <tr
              key={key}
              aria-current={isOpen ? true : undefined}
              {...(onOpen === undefined ? { 'data-row': '', tabIndex: -1 } : {})}
              className={cx(
                'relative',
                onOpen !== undefined && (isOpen ? 'bg-accent-wash' : 'hover:bg-hover'),
              )}
            >
              {columns.map((column, at) => (
                <td key={column.title} className={cx('h-10 py-1.5', place(column, at))}>
                  {at === 0 && onOpen !== undefined ? (
                    <button
                      type="button"
                      onClick={() => onOpen(key)}
                      className="w-full text-left after:absolute after:inset-0"
                    >
                      {column.cell(row)}
                    </button>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** The name of a row, with a second line below it. */
export function RowName({ name, about }: { readonly name: string; readonly about?: ReactNode }) {
  return (
    <span className="block min-w-0 xl:min-w-52">
      <span className="mono font-medium wrap-anywhere">{breakable(name)}</span>
      {about === undefined ? null : (
        <span className="block text-2xs wrap-anywhere text-soft">
          {typeof about === 'string' ? breakable(about) : about}
        </span>
      )}
    </span>
  );
}
