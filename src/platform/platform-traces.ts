// Flows by their correlation id, over the engines of a platform or a command line.

import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import {
  createSubscriptionRunner,
  type SubscriptionRunner,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import { createTraces, type Traces } from '../traces/create-traces.ts';
import { traceSubscription } from '../traces/keep-trace-index.ts';
import type { TraceIndex } from '../traces/trace-index.ts';

export interface TraceEngines {
  readonly store: EventStore;
  readonly storage: SubscriptionStorage;
  readonly traces: TraceIndex;
  /** Absent: nothing leaves. */
  readonly ledger?: Pick<OutboxLedger, 'bySource'> | undefined;
}

/** How often the checkpoint is looked at that another process writes. */
const pollMs = 50;

/** `runnerHere`: the one that fills the index, where this process has it. */
export function tracesOver(
  { store, storage, traces: index, ledger }: TraceEngines,
  {
    clock,
    runnerHere,
  }: { readonly clock: Clock; readonly runnerHere?: () => Indexing | undefined },
): Traces {
  // Never started: it only looks at the checkpoint.
  const elsewhere = createSubscriptionRunner(store, traceSubscription(index), {
    storage,
    clock,
    pollMs,
  });
  return createTraces({
    store,
    storage,
    index,
    clock,
    messagesOf: async (sources, limit) => (await ledger?.bySource(sources, limit)) ?? [],
    whenIndexed: (signal) => (runnerHere?.() ?? elsewhere).whenCaughtUp(signal),
  });
}

type Indexing = Pick<SubscriptionRunner, 'whenCaughtUp'>;

/** Those of a platform that keeps none. */
export const noTraces: Traces = {
  async get() {
    throw new MillraceError('NOT_SUPPORTED', 'no traces are kept here (traces: false)', {
      details: { field: 'traces' },
    });
  },
};
