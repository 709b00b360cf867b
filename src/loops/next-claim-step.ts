// Pure decisions of `claimLoop`: what to claim and to settle, how to behave in an outage, and when a stopped loop is over.

/** The items that a loop has at a moment. */
export interface ClaimLoad {
  /** Claimed, not started. */
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly running: number;
  /** Ended; the outcome is not stored yet. */
  readonly unsettled: number;
}

export interface ClaimRules {
  /** How many items may be claimed now. */
  readonly room: (load: ClaimLoad) => number;
  /** The payload bytes that may wait. */
  readonly bytesMax: number;
}

export interface ClaimState {
  readonly phase: 'open' | 'stopping' | 'over';
  /** `asleep`: the last claim found nothing. */
  readonly claim: 'idle' | 'calling' | 'asleep';
  /** `last`: everything has ended; if this call fails, the loop gives up. */
  readonly settle: 'idle' | 'calling' | 'last';
  /** Failed calls since the last successful one. */
  readonly failures: number;
  readonly isBackingOff: boolean;
  /** An outage was reported. */
  readonly isLost: boolean;
  /** Grows with each outage and each end of one: a call from before proves nothing about now. */
  readonly epoch: number;
  /** The mean size of the items of the last claim. */
  readonly itemBytes: number;
}

export type ClaimEvent =
  /** An item ended or was lost, or the room changed. */
  | { readonly kind: 'changed' }
  | {
      readonly kind: 'claimed';
      readonly epoch: number;
      readonly count: number;
      readonly bytes: number;
    }
  | { readonly kind: 'woken' }
  | { readonly kind: 'settled'; readonly epoch: number }
  | { readonly kind: 'failed'; readonly call: 'claim' | 'settle'; readonly epoch: number }
  | { readonly kind: 'backed-off' }
  | { readonly kind: 'stop' };

export interface ClaimStep {
  readonly state: ClaimState;
  /** The size of the claim to make now. 0: none. */
  readonly claim: number;
  readonly settle: boolean;
  readonly sleep: boolean;
  readonly backOff: boolean;
  readonly report: 'lost' | 'restored' | undefined;
}

export const firstClaimState: ClaimState = {
  phase: 'open',
  claim: 'idle',
  settle: 'idle',
  failures: 0,
  isBackingOff: false,
  isLost: false,
  epoch: 0,
  itemBytes: 0,
};

/** `load` is the load after the event. */
export function nextClaimStep(
  before: ClaimState,
  event: ClaimEvent,
  { load, rules }: { readonly load: ClaimLoad; readonly rules: ClaimRules },
): ClaimStep {
  const state = record(before, event, load);
  const calls = begin(state, load, rules);
  const hasReport = state.isLost !== before.isLost;
  return {
    ...calls,
    sleep: state.claim === 'asleep' && before.claim !== 'asleep',
    backOff: state.isBackingOff && !before.isBackingOff,
    report: hasReport ? (state.isLost ? 'lost' : 'restored') : undefined,
  };
}

function record(state: ClaimState, event: ClaimEvent, load: ClaimLoad): ClaimState {
  switch (event.kind) {
    case 'claimed': {
      const itemBytes = event.count > 0 ? event.bytes / event.count : state.itemBytes;
      const claim = event.count > 0 ? ('idle' as const) : ('asleep' as const);
      return succeed({ ...state, claim, itemBytes }, event.epoch, load);
    }
    case 'settled':
      return succeed({ ...state, settle: 'idle' }, event.epoch, load);
    case 'failed': {
      const phase = event.call === 'settle' && state.settle === 'last' ? 'over' : state.phase;
      return fail({ ...state, phase, [event.call]: 'idle' }, event.epoch);
    }
    case 'woken':
      return { ...state, claim: 'idle' };
    case 'backed-off':
      return { ...state, isBackingOff: false };
    case 'stop':
      return { ...state, phase: 'stopping' };
    default:
      return state;
  }
}

function succeed(state: ClaimState, epoch: number, { unsettled }: ClaimLoad): ClaimState {
  if (epoch !== state.epoch) return state;
  // Claims can succeed while outcomes cannot be stored: the outage ends when all outcomes are stored.
  if (!state.isLost || unsettled > 0) return { ...state, failures: 0 };
  return { ...state, failures: 0, isLost: false, epoch: state.epoch + 1 };
}

function fail(state: ClaimState, epoch: number): ClaimState {
  if (epoch !== state.epoch) return state;
  const after = { ...state, failures: state.failures + 1, isBackingOff: true };
  return state.isLost ? after : { ...after, isLost: true, epoch: state.epoch + 1 };
}

type Calls = Pick<ClaimStep, 'state' | 'claim' | 'settle'>;

function begin(state: ClaimState, load: ClaimLoad, rules: ClaimRules): Calls {
  const { waiting, running, unsettled } = load;
  const canSettle = state.settle === 'idle' && unsettled > 0;
  const hasEnded = state.claim === 'idle' && waiting === 0 && running === 0;
  if (state.phase === 'over') return { state, claim: 0, settle: false };
  if (state.phase === 'stopping' && hasEnded && state.settle === 'idle') {
    const after = canSettle ? { settle: 'last' as const } : { phase: 'over' as const };
    return { state: { ...state, ...after }, claim: 0, settle: canSettle };
  }
  if (state.isBackingOff) return { state, claim: 0, settle: false };
  const claim = state.phase === 'open' ? claimSize(state, load, rules) : 0;
  return {
    state: {
      ...state,
      claim: claim > 0 ? 'calling' : state.claim,
      settle: canSettle ? 'calling' : state.settle,
    },
    claim,
    settle: canSettle,
  };
}

function claimSize(state: ClaimState, load: ClaimLoad, { room, bytesMax }: ClaimRules): number {
  // While outcomes cannot be stored, more items would only end in the same way.
  if (state.claim !== 'idle' || (state.isLost && load.unsettled > 0)) return 0;
  const items = room(load);
  if (state.itemBytes === 0) return items;
  const fitting = Math.floor((bytesMax - load.waitingBytes) / state.itemBytes);
  // One item may always be claimed when none waits, however large it is.
  return Math.min(items, Math.max(fitting, load.waiting === 0 ? 1 : 0));
}
