// Traces by correlation id, over the engines of a platform or a command line.

import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import {
  createSubscriptionRunner,
  type SubscriptionRunner,
  type SubscriptionOptions,
} from '../subscriptions/subscription-runner.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import { createTraces, type Traces, type TraceSources } from '../traces/create-traces.ts';
import { traceSubscription } from '../traces/keep-trace-index.ts';
import type { TraceIndex } from '../traces/trace-index.ts';

export interface TraceRoles extends SubscriptionRoles {
  readonly traces: TraceIndex;
  /** Undefined: there are no outgoing messages. */
  readonly outbox?: Pick<OutboxLedger, 'bySource'> | undefined;
}

/** How often a checkpoint that another process writes is read. */
const pollMs = 50;

/** `indexer`: the subscription that fills the index, if this process runs it. */
export function tracesOver(
  roles: TraceRoles,
  {
    clock,
    indexer,
    workOf,
  }: {
    readonly clock: Clock;
    readonly indexer?: SubscriptionRunner | undefined;
    readonly workOf?: TraceSources['workOf'];
  },
): Traces {
  const { store, subscriptions: storage, traces: index, outbox } = roles;
  // One that is never started only reads the checkpoint.
  const runner =
    indexer ?? createSubscriptionRunner(roles, traceSubscription(index), { clock, pollMs });
  return createTraces({
    store,
    storage,
    index,
    clock,
    workOf,
    messagesOf: async (sources, limit) => (await outbox?.bySource(sources, limit)) ?? [],
    whenIndexed: (signal) => runner.whenCaughtUp(signal),
  });
}

/** The traces of a platform without an index. */
export const noTraces: Traces = { get: refuse, entries: refuse };

async function refuse(): Promise<never> {
  throw new MillraceError(
    'NOT_SUPPORTED',
    'traces are off: `traces: false`, or no configured engine has a trace index',
    { details: { field: 'traces' } },
  );
}

/** The subscription that fills the index. Events older than the retention are not indexed. */
export function createTraceIndexer(
  roles: TraceRoles,
  {
    traceRetentionMs,
    ...options
  }: SubscriptionOptions & { readonly clock: Clock; readonly traceRetentionMs: number },
): SubscriptionRunner {
  const notBeforeMs = (): number => options.clock.now() - traceRetentionMs;
  return createSubscriptionRunner(roles, traceSubscription(roles.traces, { notBeforeMs }), options);
}
