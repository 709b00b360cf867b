// The port for finding the events of a flow by correlation id, with one small row per event.

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
  /** Only entries of this tenant. */
  readonly tenant?: string | undefined;
  readonly limit: number;
}

/**
 * Usually stored in the event database.
 *
 * @example
 * import { memoryTraceIndex, type TraceIndex } from 'millrace/traces';
 *
 * const index: TraceIndex = memoryTraceIndex();
 * console.log(await index.find('request-1', { limit: 100 })); // []
 */
export interface TraceIndex {
  /** Ignores entries that are already stored. */
  add(entries: readonly TraceEntry[]): Promise<void>;
  /** Ordered by position. */
  find(correlationId: string, query: TraceQuery): Promise<readonly TraceEntry[]>;
  /** Deletes up to `limit` entries of events recorded before this time. Returns the number deleted. */
  sweep(recordedBeforeMs: number, limit: number): Promise<number>;
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
    async find(correlationId, { tenant, limit }) {
      return [...(flows.get(correlationId)?.values() ?? [])]
        .filter((entry) => tenant === undefined || entry.tenant === tenant)
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
