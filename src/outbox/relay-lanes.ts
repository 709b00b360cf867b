// The lanes that a relay owns, and what each of them is at: free, asked for more, with a batch out, or with
// one whose outcome waits to be written down.

import type { BatchDecision } from './decide-batch.ts';
import type { LaneBatch, LaneClaim, OwnedLane } from './outbox-streams.ts';

export interface RelayLane {
  readonly claim: LaneClaim;
  /** Before the last renewal was asked for: the lease is over no earlier than its length after this. */
  leasedAtMs: number;
  /** Batches in a row of which nothing could be sent. */
  failures: number;
}

interface Held extends RelayLane {
  state: 'free' | 'asked' | 'out' | 'finished';
  messages: number;
  holdUntilMs: number;
}

interface FinishedBatch {
  readonly lane: RelayLane;
  readonly batch: LaneBatch;
  readonly decision: BatchDecision;
}

export interface RelayLanes {
  readonly owned: number;
  readonly inFlight: number;
  readonly finished: number;
  /** What the ledger says is ours, now. */
  own(lanes: readonly OwnedLane[], leasedAtMs: number): void;
  /** Free ones above our share: others wait for them. */
  takeSurplus(): readonly LaneClaim[];
  /** Those to ask for more. */
  free(nowMs: number): readonly RelayLane[];
  /** Nobody else asks them until it is answered; they come last the next time. */
  ask(asked: readonly RelayLane[]): void;
  /** Those that nothing was given out of are free again. */
  answered(asked: readonly RelayLane[]): void;
  giveOut(batch: LaneBatch, leasedAtMs: number): RelayLane | undefined;
  finish(lane: RelayLane, batch: LaneBatch, decision: BatchDecision): void;
  takeFinished(): readonly FinishedBatch[];
  /** They could not be written down. */
  putBack(finished: readonly FinishedBatch[]): void;
  settle(finished: FinishedBatch, isSettled: boolean, nowMs: number): void;
  /** Until the first lane that holds may go on. */
  holdMs(nowMs: number): number;
  takeAll(): readonly LaneClaim[];
}

export function createRelayLanes(): RelayLanes {
  const lanes = new Map<number, Held>();
  let shares = new Map<string, number>();
  let finished: FinishedBatch[] = [];

  const mine = (claim: LaneClaim): Held | undefined => {
    const lane = lanes.get(claim.lane);
    return lane?.claim.epoch === claim.epoch ? lane : undefined;
  };

  return {
    get owned() {
      return lanes.size;
    },
    get inFlight() {
      let sum = 0;
      for (const { state, messages } of lanes.values()) if (state === 'out') sum += messages;
      return sum;
    },
    get finished() {
      return finished.length;
    },
    own(owned, leasedAtMs) {
      shares = new Map(owned.map(({ integrationType, share }) => [integrationType, share]));
      const kept = new Set<number>();
      for (const { integrationType, lane, epoch } of owned) {
        kept.add(lane);
        const known = mine({ integrationType, lane, epoch });
        if (known !== undefined) known.leasedAtMs = leasedAtMs;
        else {
          const claim = { integrationType, lane, epoch };
          const fresh = { failures: 0, messages: 0, holdUntilMs: 0 };
          lanes.set(lane, { claim, leasedAtMs, state: 'free', ...fresh });
        }
      }
      // What is out of a lane that is lost comes to its end; its outcome is refused.
      for (const lane of lanes.keys()) if (!kept.has(lane)) lanes.delete(lane);
    },
    takeSurplus() {
      const counts = Map.groupBy(lanes.values(), ({ claim }) => claim.integrationType);
      const surplus: LaneClaim[] = [];
      for (const [type, all] of counts) {
        const over = all.length - (shares.get(type) ?? all.length);
        if (over <= 0) continue;
        const free = all.filter(({ state }) => state === 'free');
        surplus.push(...free.slice(0, over).map(({ claim }) => claim));
      }
      for (const { lane } of surplus) lanes.delete(lane);
      return surplus;
    },
    free: (nowMs) =>
      [...lanes.values()].filter(
        ({ state, holdUntilMs }) => state === 'free' && holdUntilMs <= nowMs,
      ),
    ask(asked) {
      for (const { claim } of asked) {
        const lane = mine(claim);
        if (lane?.state !== 'free') continue;
        lane.state = 'asked';
        lanes.delete(claim.lane);
        lanes.set(claim.lane, lane);
      }
    },
    answered(asked) {
      for (const { claim } of asked) {
        const lane = mine(claim);
        if (lane?.state === 'asked') lane.state = 'free';
      }
    },
    giveOut(batch, leasedAtMs) {
      const lane = mine(batch.claim);
      if (lane === undefined) return undefined;
      Object.assign(lane, { state: 'out', messages: batch.items.length, leasedAtMs });
      return lane;
    },
    finish(lane, batch, decision) {
      const held = mine(lane.claim);
      if (held !== undefined)
        Object.assign(held, { state: 'finished', failures: decision.failures });
      finished.push({ lane, batch, decision });
    },
    takeFinished() {
      const taken = finished;
      finished = [];
      return taken;
    },
    putBack(back) {
      finished = [...back, ...finished];
    },
    settle({ lane, decision }, isSettled, nowMs) {
      const held = mine(lane.claim);
      if (held === undefined) return;
      if (isSettled) {
        held.state = 'free';
        held.holdUntilMs = nowMs + decision.holdMs;
      } else lanes.delete(lane.claim.lane);
    },
    holdMs(nowMs) {
      const holds = [...lanes.values()].flatMap(({ state, holdUntilMs }) =>
        state === 'free' && holdUntilMs > nowMs ? [holdUntilMs - nowMs] : [],
      );
      return Math.min(Number.POSITIVE_INFINITY, ...holds);
    },
    takeAll() {
      const all = [...lanes.values()].map(({ claim }) => claim);
      lanes.clear();
      return all;
    },
  };
}
