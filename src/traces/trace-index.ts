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
 * import { openMemory } from 'millrace/engines/memory';
 * import type { TraceIndex } from 'millrace/traces';
 *
 * const index: TraceIndex = openMemory().traces;
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
