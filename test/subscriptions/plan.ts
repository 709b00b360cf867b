import { soakMinutes, type EngineName } from '../store/rig.ts';
import type { WorkerPlan } from './kill-workers.ts';

/** Short where it is one test among many; one minute, 20k events and 500 aggregates in a soak. */
export function planOf(run: {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
}): WorkerPlan {
  const common = { ...run, workers: 3, shards: 4 };
  return soakMinutes > 0
    ? {
        ...common,
        events: 20_000,
        aggregates: 500,
        leaseMs: 2_000,
        faultsMs: 60_000,
        faultEveryMs: 2_000,
      }
    : {
        ...common,
        events: 2_000,
        aggregates: 100,
        leaseMs: 1_000,
        faultsMs: 5_000,
        faultEveryMs: 800,
      };
}
