// The port that shares breakers between processes. Times are durations, measured by the clock of the store, because
// the clocks of processes may differ.

import { systemClock, type Clock } from '../foundation/clock.ts';

/** A breaker that is not closed. */
export interface SharedBreaker {
  readonly destination: string;
  /** The remaining open time; 0: the breaker may be probed now. */
  readonly openForMs: number;
  /** How often the breaker opened without having closed in between. */
  readonly openings: number;
}

export interface BreakerProbe {
  /** Unique for each start of a process. */
  readonly holder: string;
  /** After this time without a result the prober is considered dead, and another one may probe. */
  readonly forMs: number;
}

/** Called about once a second, and when a breaker changes: never for each call. */
export interface BreakerStore {
  /** All breakers that are not closed. */
  list(): Promise<readonly SharedBreaker[]>;
  /** Never shortens an existing opening; the result of a running probe no longer counts. */
  open(
    destination: string,
    opening: { readonly forMs: number; readonly openings: number },
  ): Promise<void>;
  /** Whether this process may probe: the opening has expired and no other process probes. The same holder may repeat it. */
  probe(destination: string, probe: BreakerProbe): Promise<boolean>;
  /** False: another process probes, or the breaker was opened again; nothing was changed. */
  close(destination: string, holder: string): Promise<boolean>;
}

interface Row {
  readonly untilMs: number;
  readonly openings: number;
  readonly probe?: { readonly holder: string; readonly untilMs: number };
}

/**
 * Breakers shared by several deliveries of one process. Between processes: `breakers` of SQLite, PostgreSQL or Redis.
 *
 * @example
 * import { createDelivery, memoryBreakerStore } from 'millrace/delivery';
 *
 * const breakers = memoryBreakerStore();
 * const destinations = { audit: async () => {} };
 * const deliveries = [createDelivery({ destinations, breakers }), createDelivery({ destinations, breakers })];
 */
export function memoryBreakerStore(clock: Clock = systemClock): BreakerStore {
  const rows = new Map<string, Row>();
  return {
    async list() {
      return [...rows].map(([destination, { untilMs, openings }]) => ({
        destination,
        openForMs: Math.max(0, untilMs - clock.now()),
        openings,
      }));
    },
    async open(destination, { forMs, openings }) {
      const known = rows.get(destination);
      rows.set(destination, {
        untilMs: Math.max(known?.untilMs ?? 0, clock.now() + forMs),
        openings: Math.max(known?.openings ?? 0, openings),
      });
    },
    async probe(destination, { holder, forMs }) {
      const row = rows.get(destination);
      // Only this process knows it.
      if (row === undefined) return true;
      const nowMs = clock.now();
      const isTaken =
        row.probe !== undefined && row.probe.holder !== holder && nowMs < row.probe.untilMs;
      if (nowMs < row.untilMs || isTaken) return false;
      rows.set(destination, { ...row, probe: { holder, untilMs: nowMs + forMs } });
      return true;
    },
    async close(destination, holder) {
      return rows.get(destination)?.probe?.holder === holder && rows.delete(destination);
    },
  };
}
