// What a worker asks for, checked, as the rules by which an engine hands jobs out.

import { checkWorker, wholeNumber } from './check-task.ts';
import type { KnownTypes } from './known-types.ts';
import { deadlineGraceMs } from './task-decision.ts';
import type { ClaimRequest } from './task-engine.ts';
import { taskLimits as limits } from './task-limits.ts';
import type { ClaimOptions } from './tasks.ts';

export function claimRequest(
  asked: ClaimOptions,
  { types, nowMs }: { readonly types: KnownTypes; readonly nowMs: number },
): ClaimRequest {
  const leaseMs = leaseOf(asked.leaseMs);
  const rules = Object.entries(asked.types).map(([name, limit]) => {
    const type = types.workable(name);
    return {
      type: name,
      limit: wholeNumber(`types.${name}`, limit, { min: 0, max: limits.workersMax }),
      deadlineAfterMs: type.stepTimeoutMs + deadlineGraceMs,
      rate: type.rate,
      keyLimit: type.concurrencyLimit,
      mayBeHanded: type.onLost === 'retry',
    };
  });
  const room = rules.reduce((sum, { limit }) => sum + limit, 0);
  const limit = wholeNumber('limit', asked.limit ?? Math.min(room, limits.batchMax), {
    min: 0,
    max: limits.batchMax,
  });
  return {
    worker: checkWorker(asked.worker),
    aliveUntilMs: nowMs + leaseMs,
    rules: rules.filter((rule) => rule.limit > 0),
    limit,
    nowMs,
  };
}

export function leaseOf(leaseMs: number = limits.leaseMsDefault): number {
  return wholeNumber('leaseMs', leaseMs, { min: limits.leaseMsMin, max: limits.durationMsMax });
}
