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
  return [...counts].map(([kind, count]) => `${count} ${count === 1 ? kind : pluralOf(kind)}`);
}

/** Failed rows and everything that led to them. */
export function withFailuresOnly(rows: readonly TraceRow[]): readonly TraceRow[] {
  const parents = new Map(rows.map(({ node }) => [node.id, node.parent]));
  const kept = new Set<string>();
  for (const { node, state } of rows) {
    if (state !== 'failed') continue;
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
    default: {
      const state =
        node.outcome === 'sent' ? 'done' : node.outcome === 'running' ? 'waiting' : 'failed';
      const title = `attempt ${node.attempt}`;
      return { title, about: node.outcome, state, durationMs: node.durationMs };
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

const deliveryStates: Readonly<Record<string, TraceRow['state']>> = {
  SENT: 'done',
  FAILED: 'failed',
  DEAD: 'failed',
};

function pluralOf(kind: string): string {
  return kind === 'delivery' ? 'deliveries' : `${kind}s`;
}
