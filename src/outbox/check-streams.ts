// The edge of stream mode: what is refused before a ledger sees it, and what a ledger without it says.

import { MillraceError } from '../foundation/error.ts';
import { checkClaim, lastErrorText, text, wholeNumber } from './check-outbox.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { LaneChange, LaneOutcome, OutboxStreams } from './outbox-streams.ts';

export function checkedStreams(streams: OutboxStreams | undefined): OutboxStreams {
  const get = (): OutboxStreams => {
    if (streams !== undefined) return streams;
    throw new MillraceError('NOT_SUPPORTED', 'this ledger has no stream mode', {
      details: { capability: 'streamMode' },
    });
  };
  return {
    async declare(integrationType, options) {
      const lanes = options?.lanes ?? limits.streamLanesDefault;
      text('integrationType', integrationType, limits.integrationTypeMax);
      wholeNumber('lanes', lanes, limits.streamLanesMax);
      return get().declare(integrationType, { lanes });
    },
    retire: async (integrationType) => get().retire(integrationType),
    declared: async () => get().declared(),
    async acquire(request) {
      checkClaim(request.workerId, 1, request.leaseMs);
      return get().acquire(request);
    },
    async exchange(outcomes, fetch) {
      for (const { claim, limit } of fetch?.lanes ?? []) {
        checkClaim(`lane ${claim.lane}`, limit, fetch?.leaseMs ?? 0);
      }
      // Two epochs of a lane, told together: the earlier one is over.
      const latest = new Map<number, LaneOutcome>();
      for (const each of outcomes) {
        const other = latest.get(each.claim.lane);
        if (other === undefined || other.claim.epoch < each.claim.epoch) {
          latest.set(each.claim.lane, each);
        }
      }
      const asked = [...latest.values()];
      const short = asked.map((each) => ({ ...each, changes: each.changes.map(shortened) }));
      const answer = await get().exchange(short, fetch);
      const told = new Map(asked.map((each, at) => [each, answer.settled[at]]));
      return { ...answer, settled: outcomes.map((each) => told.get(each) ?? 'stale') };
    },
  };
}

function shortened(change: LaneChange): LaneChange {
  return 'error' in change ? { ...change, error: lastErrorText(change.error) } : change;
}
