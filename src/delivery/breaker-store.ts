// The port by which processes tell each other which destinations are left alone. Times are spans, measured by
// the store's own clock: those of processes may differ.

import { systemClock, type Clock } from '../foundation/clock.ts';

/** A breaker that is not closed. */
export interface SharedBreaker {
  readonly destination: string;
  /** 0: its time is up, and it may be probed. */
  readonly openForMs: number;
  /** How often it opened without having been closed in between. */
  readonly openings: number;
}

export interface BreakerProbe {
  /** Names the process start. */
  readonly holder: string;
  /** A prober that says nothing for this long has died, and another may go. */
  readonly forMs: number;
}

/** The port: where breakers are shared. Asked about once a second, and when one changes: never for each call. */
export interface BreakerStore {
  /** All that are not closed. */
  list(): Promise<readonly SharedBreaker[]>;
  /** Never shortens what is there; whoever was probing is not heard any more. */
  open(
    destination: string,
    opening: { readonly forMs: number; readonly openings: number },
  ): Promise<void>;
  /** Whether this one may probe: its time is up, and nobody else does. The same holder may again. */
  probe(destination: string, probe: BreakerProbe): Promise<boolean>;
  /** False: somebody else probes, or it was opened again meanwhile; nothing was changed. */
  close(destination: string, holder: string): Promise<boolean>;
}

interface Row {
  readonly untilMs: number;
  readonly openings: number;
  readonly probe?: { readonly holder: string; readonly untilMs: number };
}

/**
 * Breakers that several deliveries of one process share. Between processes: `redisBreakerStore`,
 * `postgresBreakerStore`, `sqliteBreakerStore`.
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
      // Nobody else knows of it.
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
