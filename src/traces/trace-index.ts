// Which events a flow has: events are not found by their correlation id, so a narrow row of each is.

import type { Position } from '../store/position.ts';

export interface TraceEntry {
  readonly correlationId: string;
  readonly position: Position;
  readonly tenant: string;
  readonly stream: string;
  readonly revision: number;
  readonly recordedAtMs: number;
}

export interface TraceQuery {
  /** Of this tenant only. */
  readonly tenant?: string | undefined;
  readonly limit: number;
  /** Exclusive. */
  readonly after?: Position | undefined;
}

/**
 * The port. The store's own database brings it where it has room.
 *
 * @example
 * import { memoryTraceIndex, type TraceIndex } from 'millrace/traces';
 *
 * const index: TraceIndex = memoryTraceIndex();
 * console.log(await index.find('request-1', { limit: 100 })); // []
 */
export interface TraceIndex {
  /** Those that are there already change nothing. */
  add(entries: readonly TraceEntry[]): Promise<void>;
  /** In the order of their positions. */
  find(correlationId: string, query: TraceQuery): Promise<readonly TraceEntry[]>;
  /** Forgets up to so many of events that were recorded before this. Returns how many. */
  sweep(recordedBeforeMs: number, limit: number): Promise<number>;
}

/** An event store whose database has room for it. */
export interface TraceHost {
  readonly traces: TraceIndex;
}

/**
 * An index in memory, for unit tests.
 *
 * @example
 * import { memoryTraceIndex } from 'millrace/traces';
 *
 * const index = memoryTraceIndex();
 * console.log(await index.sweep(Date.now(), 100)); // 0
 */
export function memoryTraceIndex(): TraceIndex {
  const flows = new Map<string, Map<Position, TraceEntry>>();
  return {
    async add(entries) {
      for (const entry of entries) {
        const flow = flows.get(entry.correlationId) ?? new Map<Position, TraceEntry>();
        flows.set(entry.correlationId, flow);
        if (!flow.has(entry.position)) flow.set(entry.position, entry);
      }
    },
    async find(correlationId, { tenant, limit, after }) {
      return [...(flows.get(correlationId)?.values() ?? [])]
        .filter(
          (entry) =>
            (tenant === undefined || entry.tenant === tenant) &&
            (after === undefined || entry.position > after),
        )
        .toSorted((a, b) => (a.position < b.position ? -1 : 1))
        .slice(0, limit);
    },
    async sweep(recordedBeforeMs, limit) {
      const old = [...flows.values()]
        .flatMap((flow) => [...flow.values()])
        .filter(({ recordedAtMs }) => recordedAtMs < recordedBeforeMs)
        .toSorted((a, b) => a.recordedAtMs - b.recordedAtMs)
        .slice(0, limit);
      for (const { correlationId, position } of old) {
        const flow = flows.get(correlationId);
        flow?.delete(position);
        if (flow?.size === 0) flows.delete(correlationId);
      }
      return old.length;
    },
  };
}
