// The breakers of a process, one for each integration type. With a store they are shared: when one process opens a
// breaker, the others stop calling within about a second, and one of them probes. Only a probe waits for the store;
// while the store is unavailable, each process uses only its local breakers.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { BreakerStore, SharedBreaker } from './breaker-store.ts';
import {
  admitCall,
  freshBreaker,
  settleCall,
  type BreakerAnswer,
  type BreakerPermit,
  type BreakerPolicy,
  type BreakerResult,
  type BreakerState,
} from './circuit-breaker.ts';

export interface Breakers {
  stateOf(type: string): BreakerState;
  /** Reads the breakers of other processes if the last read is long enough ago; does not wait for it. */
  refresh(): void;
  /** Undefined: no permission is needed. Never rejects. */
  mayProbe(type: string, policy: BreakerPolicy): Promise<boolean> | undefined;
  admit(type: string, policy: BreakerPolicy): BreakerAnswer;
  settle(
    type: string,
    policy: BreakerPolicy,
    call: { readonly permit: BreakerPermit; readonly result: BreakerResult },
  ): void;
}

export interface BreakersOptions {
  readonly clock: Clock;
  readonly observer: Observer;
  readonly store: BreakerStore | undefined;
  readonly refreshMs: number;
}

export function createBreakers({ clock, observer, store, refreshMs }: BreakersOptions): Breakers {
  const holder = randomUUID();
  const states = new Map<string, BreakerState>();
  /** Breakers that were open in the store at the last read. */
  let shared = new Set<string>();
  const probeRequests = new Map<string, Promise<boolean>>();
  let isReading = false;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let isStoreUnavailable = false;
  // Sequential: a list must not overtake an opening or closing that it should show.
  let last = Promise.resolve();

  const stateOf = (type: string): BreakerState => states.get(type) ?? freshBreaker;

  function set(type: string, state: BreakerState): void {
    const before = stateOf(type);
    if (state === before) return;
    // A closed breaker keeps its era, because results of earlier calls may still arrive.
    states.set(type, state);
    if (state.kind === before.kind) return;
    observer.log?.warn({ destination: type, from: before.kind, to: state.kind }, 'breaker changed');
    observer.gauge?.('delivery_breaker_open', state.kind === 'closed' ? 0 : 1, {
      destination: type,
    });
  }

  /** Logged once per outage. */
  function reportStore(error?: unknown): void {
    if (isStoreUnavailable === (error !== undefined)) return;
    isStoreUnavailable = error !== undefined;
    if (isStoreUnavailable)
      observer.log?.warn({ err: error }, 'breaker store unavailable, breakers not shared');
    else observer.log?.info({}, 'breaker store available, breakers shared');
  }

  /** A store that hangs counts as unavailable: neither a probe nor the next list waits for it. */
  function within<T>(work: () => Promise<T>): Promise<T> {
    const late = (): never => {
      throw new MillraceError('STORE_UNAVAILABLE', `no response within ${refreshMs} ms`);
    };
    return withinTime(work(), { ms: refreshMs, late, clock });
  }

  function enqueue(work: (store: BreakerStore) => Promise<void>): Promise<void> {
    if (store === undefined) return last;
    last = last.then(() => within(() => work(store))).then(() => reportStore(), reportStore);
    return last;
  }

  function publish(type: string, state: BreakerState): void {
    if (state.kind === 'open') {
      const { untilMs, openings } = state;
      void enqueue(async (to) => {
        await to.open(type, { forMs: Math.max(1, untilMs - clock.now()), openings });
        shared.add(type);
      });
    }
    // If another process probes now, the next list shows that it is not closed.
    if (state.kind === 'closed') void enqueue(async (to) => void (await to.close(type, holder)));
  }

  async function read(from: BreakerStore): Promise<void> {
    const before = new Map(states);
    const listed = await from.list();
    const names = new Set(listed.map(({ destination }) => destination));
    const isUnchanged = (type: string): boolean => states.get(type) === before.get(type);
    for (const each of listed) {
      const state = stateOf(each.destination);
      // A breaker that this process closed during the read stays closed.
      if (state.kind !== 'open' && !isUnchanged(each.destination)) continue;
      set(each.destination, adopt(state, each, clock.now()));
    }
    for (const [type, state] of states) {
      if (names.has(type) || state.kind === 'closed' || !isUnchanged(type)) continue;
      // A breaker missing in the store was closed by another process. One that was never shared is published now.
      if (shared.has(type)) set(type, { kind: 'closed', era: state.era + 1, failures: 0 });
      else publish(type, state);
    }
    shared = names;
  }

  return {
    stateOf,
    refresh() {
      if (store === undefined || isReading || clock.now() - readAtMs < refreshMs) return;
      isReading = true;
      readAtMs = clock.now();
      void enqueue(read).finally(() => {
        isReading = false;
      });
    },
    mayProbe(type, policy) {
      if (store === undefined) return undefined;
      const admission = admitCall(stateOf(type), policy, clock.now());
      if (admission.kind === 'rejected' || admission.permit.probe === undefined) return undefined;
      const known = probeRequests.get(type);
      if (known !== undefined) return known;
      const asking = within(() => store.probe(type, { holder, forMs: policy.probeMsMax }))
        .then(
          (isOurs) => {
            if (!isOurs) set(type, postponeProbe(stateOf(type), clock.now() + refreshMs));
            return isOurs;
          },
          (error: unknown) => {
            reportStore(error);
            return true;
          },
        )
        .finally(() => probeRequests.delete(type));
      probeRequests.set(type, asking);
      return asking;
    },
    admit(type, policy) {
      const admission = admitCall(stateOf(type), policy, clock.now());
      set(type, admission.state);
      return admission;
    },
    settle(type, policy, { permit, result }) {
      const before = stateOf(type);
      const next = settleCall(before, policy, { permit, result, nowMs: clock.now() });
      set(type, next);
      if (next.kind !== before.kind) publish(type, next);
    },
  };
}

/** Another process probes: this process retries when the result may be known. */
function postponeProbe(state: BreakerState, untilMs: number): BreakerState {
  // A list may have arrived with a longer time.
  const isLater = state.kind === 'open' && state.untilMs >= untilMs;
  if (state.kind === 'closed' || isLater) return state;
  return { kind: 'open', era: state.era + 1, untilMs, openings: state.openings };
}

/** Combines the opening of another process with the state of this one. */
function adopt(
  state: BreakerState,
  { openForMs, openings }: SharedBreaker,
  nowMs: number,
): BreakerState {
  const untilMs = nowMs + openForMs;
  const open: BreakerState = { kind: 'open', era: state.era + 1, untilMs, openings };
  if (state.kind === 'closed') return open;
  if (state.kind === 'open') return untilMs > state.untilMs ? open : state;
  // This process probes, unless the breaker was opened again.
  const isProbing = state.probes.some(({ deadAtMs }) => nowMs < deadAtMs);
  return isProbing || openForMs === 0 ? state : open;
}
