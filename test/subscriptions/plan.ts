import { soakMinutes, type EngineName } from '../store/rig.ts';
import type { WorkerPlan } from './kill-workers.ts';

/** Each kind of fault once in `npm test`; one minute, 20k events and 500 aggregates in a soak. */
export function planOf(run: {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
}): WorkerPlan {
  const common = { ...run, shards: 4 };
  return soakMinutes > 0
    ? {
        ...common,
        workers: 3,
        events: 20_000,
        aggregates: 500,
        appendEveryMs: 33,
        leaseMs: 2_000,
        faultsMs: 60_000,
        faultEveryMs: 2_000,
      }
    : {
        ...common,
        workers: 2,
        events: 300,
        aggregates: 40,
        appendEveryMs: 100,
        leaseMs: 1_000,
        faultsMs: 0,
        faultEveryMs: 100,
      };
}
