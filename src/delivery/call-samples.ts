// The newest calls of each destination in this process: how many per second, and how long they take.

export interface CallActivity {
  /** Calls per second. */
  readonly perSecond: number;
  /** 95 of 100 calls took at most this long. */
  readonly p95Ms: number;
}

export interface CallSamples {
  add(destination: string, call: { readonly atMs: number; readonly durationMs: number }): void;
  /** Destinations without a call within `windowMs` are missing. */
  activity(nowMs: number): ReadonlyMap<string, CallActivity>;
}

interface Call {
  readonly atMs: number;
  readonly durationMs: number;
}

interface Ring {
  readonly calls: Call[];
  next: number;
}

export const callSampleLimits = {
  windowMs: 300_000,
  /** For each destination. */
  callsMax: 500,
  /** The destination that was added first is forgotten. */
  destinationsMax: 1_000,
} as const;

export function createCallSamples(startedAtMs: number): CallSamples {
  const { windowMs, callsMax, destinationsMax } = callSampleLimits;
  const rings = new Map<string, Ring>();

  const ringOf = (destination: string): Ring => {
    const known = rings.get(destination);
    if (known !== undefined) return known;
    const [oldest] = rings.keys();
    if (rings.size >= destinationsMax && oldest !== undefined) rings.delete(oldest);
    const ring: Ring = { calls: [], next: 0 };
    rings.set(destination, ring);
    return ring;
  };

  return {
    add(destination, call) {
      const ring = ringOf(destination);
      ring.calls[ring.next] = call;
      ring.next = (ring.next + 1) % callsMax;
    },
    activity(nowMs) {
      const active = new Map<string, CallActivity>();
      for (const [destination, { calls, next }] of rings) {
        const recent = calls.filter(({ atMs }) => atMs > nowMs - windowMs);
        if (recent.length === 0) continue;
        // The ring may have room for a part of the window only.
        const isCut = recent.length === callsMax;
        const sinceMs = isCut
          ? (calls[next]?.atMs ?? startedAtMs)
          : Math.max(nowMs - windowMs, startedAtMs);
        const durations = recent.map(({ durationMs }) => durationMs).toSorted((a, b) => a - b);
        active.set(destination, {
          perSecond: (recent.length * 1_000) / Math.max(1_000, nowMs - sinceMs),
          p95Ms: durations[Math.ceil(durations.length * 0.95) - 1] ?? 0,
        });
      }
      return active;
    },
  };
}
