// The circuit breaker of a destination: closed, open, or half-open with a few probes. A pure, plain value.

export interface BreakerPolicy {
  /** The number of consecutive failures that open the breaker. */
  readonly failuresMax: number;
  /** The first open time; it doubles after each failed probe. */
  readonly openMs: number;
  readonly openMsMax: number;
  /** Concurrent probes while it is half-open. */
  readonly probesMax: number;
  /** The number of consecutive successful probes that close the breaker. */
  readonly probesToClose: number;
  /** After this time without a result a probe is considered dead, and another one may start. */
  readonly probeMsMax: number;
}

export const breakerLimits: BreakerPolicy = {
  failuresMax: 5,
  openMs: 5_000,
  openMsMax: 5 * 60_000,
  probesMax: 1,
  probesToClose: 2,
  probeMsMax: 60_000,
};

interface Probe {
  readonly id: number;
  readonly deadAtMs: number;
}

export type BreakerState =
  | { readonly kind: 'closed'; readonly era: number; readonly failures: number }
  | {
      readonly kind: 'open';
      readonly era: number;
      readonly untilMs: number;
      /** How often it opened without having closed in between; 0 after a requested pause. */
      readonly openings: number;
    }
  | {
      readonly kind: 'half-open';
      readonly era: number;
      readonly openings: number;
      readonly successes: number;
      readonly probes: readonly Probe[];
      readonly nextProbe: number;
    };

/** Each change of kind starts a new era; results of calls from an earlier era are ignored. */
export interface BreakerPermit {
  readonly era: number;
  readonly probe?: number;
}

export type BreakerAnswer =
  | { readonly kind: 'allowed'; readonly permit: BreakerPermit; readonly state: BreakerState }
  | { readonly kind: 'rejected'; readonly backInMs: number; readonly state: BreakerState };

export type BreakerResult =
  | { readonly kind: 'worked' }
  | { readonly kind: 'failed' }
  /** The destination requested a pause. */
  | { readonly kind: 'throttled'; readonly pauseMs: number }
  /** Cancelled by this process: the destination neither failed nor succeeded. */
  | { readonly kind: 'cancelled' };

export const freshBreaker: BreakerState = { kind: 'closed', era: 0, failures: 0 };

/** Whether another call is allowed. */
export function admitCall(
  state: BreakerState,
  policy: BreakerPolicy,
  nowMs: number,
): BreakerAnswer {
  if (state.kind === 'closed') return { kind: 'allowed', permit: { era: state.era }, state };
  if (state.kind === 'open') {
    if (nowMs < state.untilMs) {
      return { kind: 'rejected', backInMs: state.untilMs - nowMs, state };
    }
    const { era, openings } = state;
    const base = { era: era + 1, openings, successes: 0, probes: [], nextProbe: 0 };
    return admitCall({ kind: 'half-open', ...base }, policy, nowMs);
  }
  const alive = state.probes.filter(({ deadAtMs }) => nowMs < deadAtMs);
  if (alive.length >= policy.probesMax) {
    // The results of the running probes are known soon.
    return { kind: 'rejected', backInMs: Math.min(policy.openMs, policy.probeMsMax), state };
  }
  const probe = { id: state.nextProbe, deadAtMs: nowMs + policy.probeMsMax };
  return {
    kind: 'allowed',
    permit: { era: state.era, probe: probe.id },
    state: { ...state, probes: [...alive, probe], nextProbe: probe.id + 1 },
  };
}

/** The state after the result of an allowed call. */
export function settleCall(
  state: BreakerState,
  policy: BreakerPolicy,
  { permit, result, nowMs }: { permit: BreakerPermit; result: BreakerResult; nowMs: number },
): BreakerState {
  if (permit.era !== state.era || state.kind === 'open') return state;
  if (result.kind === 'throttled') {
    const untilMs = nowMs + result.pauseMs;
    const openings = state.kind === 'closed' ? 0 : state.openings;
    return { kind: 'open', era: state.era + 1, untilMs, openings };
  }
  return state.kind === 'closed'
    ? settleClosed(state, policy, result, nowMs)
    : settleProbe(state, policy, { permit, result, nowMs });
}

function settleClosed(
  state: BreakerState & { readonly kind: 'closed' },
  policy: BreakerPolicy,
  result: BreakerResult,
  nowMs: number,
): BreakerState {
  if (result.kind === 'cancelled') return state;
  if (result.kind === 'worked') return state.failures === 0 ? state : { ...state, failures: 0 };
  const failures = state.failures + 1;
  if (failures < policy.failuresMax) return { ...state, failures };
  return { kind: 'open', era: state.era + 1, untilMs: nowMs + policy.openMs, openings: 1 };
}

function settleProbe(
  state: BreakerState & { readonly kind: 'half-open' },
  policy: BreakerPolicy,
  { permit, result, nowMs }: { permit: BreakerPermit; result: BreakerResult; nowMs: number },
): BreakerState {
  // A probe that was considered dead was replaced by another one.
  if (!state.probes.some(({ id }) => id === permit.probe)) return state;
  const probes = state.probes.filter(({ id }) => id !== permit.probe);
  if (result.kind === 'cancelled') return { ...state, probes };
  if (result.kind === 'worked') {
    const successes = state.successes + 1;
    if (successes < policy.probesToClose) return { ...state, probes, successes };
    return { kind: 'closed', era: state.era + 1, failures: 0 };
  }
  const openings = state.openings + 1;
  const openMs = Math.min(policy.openMsMax, policy.openMs * 2 ** (openings - 1));
  return { kind: 'open', era: state.era + 1, untilMs: nowMs + openMs, openings };
}
