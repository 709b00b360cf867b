// When a destination is left alone: closed, open, and half-open, in which a few probes may try. Pure; a
// plain value, so that it can be looked at and kept anywhere.

export interface BreakerPolicy {
  /** This many failures in a row open it. */
  readonly failuresMax: number;
  /** How long it stays open at first; doubles with each opening that follows failed probes. */
  readonly openMs: number;
  readonly openMsMax: number;
  /** How many may try at once while it is half-open. */
  readonly probesMax: number;
  /** This many probes have to succeed in a row for it to close. */
  readonly probesToClose: number;
  /** A probe that says nothing for this long has died, and another may go. */
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
      /** How often it opened without having been closed in between; 0 when it was told to pause. */
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

/** Each change of kind begins an era; who was let in during an earlier one is not heard any more. */
export interface BreakerPermit {
  readonly era: number;
  readonly probe?: number;
}

export type BreakerAnswer =
  | { readonly kind: 'allowed'; readonly permit: BreakerPermit; readonly state: BreakerState }
  | { readonly kind: 'refused'; readonly backInMs: number; readonly state: BreakerState };

export type BreakerResult =
  | { readonly kind: 'worked' }
  | { readonly kind: 'failed' }
  /** The destination asked for a pause. */
  | { readonly kind: 'throttled'; readonly pauseMs: number }
  /** It was cancelled from our side, and says nothing about the destination. */
  | { readonly kind: 'cancelled' };

export const freshBreaker: BreakerState = { kind: 'closed', era: 0, failures: 0 };

/** May one more go? */
export function admitCall(
  state: BreakerState,
  policy: BreakerPolicy,
  nowMs: number,
): BreakerAnswer {
  if (state.kind === 'closed') return { kind: 'allowed', permit: { era: state.era }, state };
  if (state.kind === 'open') {
    if (nowMs < state.untilMs) {
      return { kind: 'refused', backInMs: state.untilMs - nowMs, state };
    }
    const { era, openings } = state;
    const base = { era: era + 1, openings, successes: 0, probes: [], nextProbe: 0 };
    return admitCall({ kind: 'half-open', ...base }, policy, nowMs);
  }
  const alive = state.probes.filter(({ deadAtMs }) => nowMs < deadAtMs);
  if (alive.length >= policy.probesMax) {
    // Whether the probes under way find it well is known soon; nobody needs to wait for their death.
    return { kind: 'refused', backInMs: Math.min(policy.openMs, policy.probeMsMax), state };
  }
  const probe = { id: state.nextProbe, deadAtMs: nowMs + policy.probeMsMax };
  return {
    kind: 'allowed',
    permit: { era: state.era, probe: probe.id },
    state: { ...state, probes: [...alive, probe], nextProbe: probe.id + 1 },
  };
}

/** What the result of a call that was let in makes of it. */
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
  // One that was given up for dead has a successor, which is asked instead.
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
