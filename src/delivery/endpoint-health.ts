// When an endpoint that only fails is disabled: a pure decision over a small record, stored with the endpoints.

export interface EndpointHealth {
  /** Consecutive failures. */
  readonly failures: number;
  readonly failingSinceMs?: number;
  readonly disabled?: { readonly atMs: number; readonly reason: string };
}

/** The port: stores the health of endpoints. */
export interface EndpointHealthStore {
  read(endpointId: string): Promise<EndpointHealth | undefined>;
  /** Replaces the record by the result of `change`, atomically. */
  update(
    endpointId: string,
    change: (health: EndpointHealth) => EndpointHealth,
  ): Promise<EndpointHealth>;
}

export interface DisablePolicy {
  /** An endpoint is disabled after this time of failures without a success. */
  readonly afterMs: number;
  /** But not before this many failures, because a single message proves nothing. */
  readonly failuresMin: number;
}

export const disableLimits: DisablePolicy = { afterMs: 5 * 24 * 60 * 60_000, failuresMin: 10 };

export const healthy: EndpointHealth = { failures: 0 };

export type EndpointResult = 'worked' | 'failed' | 'gone';

/** Returns the same value if nothing changes. A disabled endpoint stays disabled until a person enables it. */
export function decideHealth(
  health: EndpointHealth,
  result: EndpointResult,
  { policy, nowMs }: { readonly policy: DisablePolicy; readonly nowMs: number },
): EndpointHealth {
  if (health.disabled !== undefined) return health;
  if (result === 'worked') return health.failures === 0 ? health : healthy;
  const failingSinceMs = health.failingSinceMs ?? nowMs;
  const failing = { failures: health.failures + 1, failingSinceMs };
  if (result === 'gone') {
    return {
      ...failing,
      disabled: { atMs: nowMs, reason: 'the receiver responded with 410 Gone' },
    };
  }
  const failedForMs = nowMs - failingSinceMs;
  if (failedForMs < policy.afterMs || failing.failures < policy.failuresMin) return failing;
  const days = Math.floor(failedForMs / 86_400_000);
  const reason = `${failing.failures} failures over ${days} days without a success`;
  return { ...failing, disabled: { atMs: nowMs, reason } };
}

/**
 * Health in memory, lost with the process. Others: `endpointHealth` of SQLite or PostgreSQL, or your own.
 *
 * @example
 * import { memoryEndpointHealth } from 'millrace/delivery';
 *
 * const health = memoryEndpointHealth();
 * console.log((await health.read('acme'))?.disabled?.reason);
 * await health.update('acme', () => ({ failures: 0 })); // enables it again
 */
export function memoryEndpointHealth(): EndpointHealthStore {
  const records = new Map<string, EndpointHealth>();
  return {
    read: async (endpointId) => records.get(endpointId),
    async update(endpointId, change) {
      const next = change(records.get(endpointId) ?? healthy);
      if (next === healthy) records.delete(endpointId);
      else records.set(endpointId, next);
      return next;
    },
  };
}
