// The nodes of a trace as rows: title, state and time of each, in tree order. Pure.

import type { ResponseOf } from './api.ts';
import type { Interval } from './trace-axis.ts';

export type Trace = ResponseOf<'GET /admin/traces/{correlationId}'>;
export type TraceNode = Trace['nodes'][number];

export interface TraceRow {
  readonly node: TraceNode;
  readonly title: string;
  readonly state: 'done' | 'failed' | 'waiting';
  /** The state in a word. */
  readonly about: string;
  /** Undefined: the time is not recorded. */
  readonly interval: Interval | undefined;
}

export function traceRows(trace: Trace): readonly TraceRow[] {
  return trace.nodes.map((node) => {
    const { title, about, state, durationMs } = described(node);
    const { offsetMs } = node;
    const interval =
      offsetMs === null ? undefined : { fromMs: offsetMs, toMs: offsetMs + (durationMs ?? 0) };
    return { node, title, about, state, interval };
  });
}

/** How many nodes of each kind a trace has. */
export function traceSummary(trace: Trace): readonly string[] {
  const counts = new Map<string, number>();
  for (const { kind } of trace.nodes) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => {
    const name = kindNames[kind as TraceNode['kind']];
    return `${count} ${count === 1 ? name : pluralOf(name)}`;
  });
}

/** What people call the kinds. */
export const kindNames: Readonly<Record<TraceNode['kind'], string>> = {
  command: 'command',
  event: 'event',
  handler: 'handler',
  delivery: 'delivery',
  job: 'queue job',
  task: 'job',
  message: 'message',
  saga: 'saga',
};

export interface RowFilter {
  readonly isFailed?: boolean;
  readonly kind?: TraceNode['kind'] | undefined;
  /** Part of the title or of a value of the node. */
  readonly text?: string | undefined;
}

/** The rows that match, and everything that led to them. */
export function filterRows(
  rows: readonly TraceRow[],
  { isFailed = false, kind, text = '' }: RowFilter,
): readonly TraceRow[] {
  const wanted = text.toLowerCase();
  if (!isFailed && kind === undefined && wanted === '') return rows;
  const matches = ({ node, state, title }: TraceRow): boolean =>
    (!isFailed || state === 'failed') &&
    (kind === undefined || node.kind === kind) &&
    (wanted === '' ||
      [title, ...Object.values<unknown>(node)].some(
        (value) => typeof value === 'string' && value.toLowerCase().includes(wanted),
      ));
  const parents = new Map(rows.map(({ node }) => [node.id, node.parent]));
  const kept = new Set<string>();
  for (const row of rows) {
    if (!matches(row)) continue;
    const { node } = row;
    for (
      let id: string | null = node.id;
      id !== null && !kept.has(id);
      id = parents.get(id) ?? null
    )
      kept.add(id);
  }
  return rows.filter(({ node }) => kept.has(node.id));
}

type Described = Pick<TraceRow, 'about' | 'state' | 'title'> & {
  readonly durationMs: number | null;
};

function described(node: TraceNode): Described {
  switch (node.kind) {
    case 'command':
      return { title: node.command, about: 'decided', state: 'done', durationMs: node.durationMs };
    case 'event':
      return { title: node.type, about: `@${node.revision}`, state: 'done', durationMs: 0 };
    case 'handler': {
      const state = handlerStates[node.state] ?? 'waiting';
      return { title: node.subscription, about: node.state, state, durationMs: null };
    }
    case 'delivery': {
      const state = deliveryStates[node.status] ?? 'waiting';
      const about = node.status.toLowerCase();
      return { title: node.destination, about, state, durationMs: node.durationMs };
    }
    case 'job': {
      const state =
        node.outcome === 'sent' ? 'done' : node.outcome === 'running' ? 'waiting' : 'failed';
      const title = `attempt ${node.attempt}`;
      return { title, about: node.outcome, state, durationMs: node.durationMs };
    }
    case 'task': {
      const state = taskStates[node.state] ?? 'waiting';
      return { title: node.type, about: node.state, state, durationMs: node.durationMs };
    }
    case 'message':
      return { title: node.topic, about: 'published', state: 'done', durationMs: 0 };
    default: {
      const state = sagaStates[node.status] ?? 'waiting';
      return { title: node.saga, about: node.status, state, durationMs: null };
    }
  }
}

const handlerStates: Readonly<Record<string, TraceRow['state']>> = {
  passed: 'done',
  replayed: 'done',
  discarded: 'done',
  dead: 'failed',
  waiting: 'waiting',
  pending: 'waiting',
};

const taskStates: Readonly<Record<string, TraceRow['state']>> = {
  completed: 'done',
  cancelled: 'done',
  failed: 'failed',
};

const sagaStates: Readonly<Record<string, TraceRow['state']>> = {
  completed: 'done',
  compensated: 'done',
  parked: 'failed',
};

const deliveryStates: Readonly<Record<string, TraceRow['state']>> = {
  SENT: 'done',
  FAILED: 'failed',
  DEAD: 'failed',
};

/** A flow with more rows is folded when it is first shown. */
const openRowsMax = 60;

/** The nodes whose descendants are hidden in a large flow: the deepest levels first, until the rest is readable. */
export function foldedAtFirst(rows: readonly TraceRow[]): ReadonlySet<string> {
  if (rows.length <= openRowsMax) return new Set();
  const counts: number[] = [];
  for (const { node } of rows) counts[node.depth] = (counts[node.depth] ?? 0) + 1;
  // The roots are always open: one folded row would say nothing.
  let depth = 1;
  let shown = (counts[0] ?? 0) + (counts[1] ?? 0);
  while (depth + 1 < counts.length && shown + (counts[depth + 1] ?? 0) <= openRowsMax) {
    depth += 1;
    shown += counts[depth] ?? 0;
  }
  const parents = new Set(rows.map(({ node }) => node.parent));
  return new Set(
    rows.flatMap(({ node }) => (node.depth >= depth && parents.has(node.id) ? [node.id] : [])),
  );
}

export interface ShownRow {
  readonly row: TraceRow;
  /** How many rows below it are hidden; 0: none, undefined: nothing is below it. */
  readonly hidden: number | undefined;
}

/** The rows that are not below a folded one. */
export function unfolded(
  rows: readonly TraceRow[],
  folded: ReadonlySet<string>,
): readonly ShownRow[] {
  const shown: { readonly row: TraceRow; hidden: number | undefined }[] = [];
  let at: { depth: number; shown: { hidden: number | undefined } } | undefined;
  for (const [index, row] of rows.entries()) {
    const { depth, id } = row.node;
    if (at !== undefined && depth > at.depth) {
      at.shown.hidden = (at.shown.hidden ?? 0) + 1;
      continue;
    }
    const isParent = (rows[index + 1]?.node.depth ?? 0) > depth;
    const entry = { row, hidden: isParent ? 0 : undefined };
    shown.push(entry);
    at = isParent && folded.has(id) ? { depth, shown: entry } : undefined;
  }
  return shown;
}

function pluralOf(name: string): string {
  return name === 'delivery' ? 'deliveries' : `${name}s`;
}
