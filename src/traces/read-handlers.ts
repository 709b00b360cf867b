// The progress of subscriptions on the events of a flow, from their filters, checkpoints, completion marks
// and waiting events.

import { compileFilter, matchesRow } from '../store/event-filter.ts';
import type { Position } from '../store/position.ts';
import { shardOf } from '../subscriptions/rules/lane-of.ts';
import type {
  SubscriptionState,
  SubscriptionStorage,
  WaitingEvent,
} from '../subscriptions/subscription-storage.ts';
import { traceSubscriptionName } from './keep-trace-index.ts';
import type { HandlerFact, TracedEvent } from './trace-node.ts';

const waitingMax = 1_000;

export async function readHandlers(
  storage: SubscriptionStorage,
  events: readonly TracedEvent[],
): Promise<readonly HandlerFact[]> {
  const known = await storage.checkpoints.list();
  const all: (readonly HandlerFact[])[] = [];
  // Sequential: one trace request must not use all database connections.
  for (const state of known) {
    if (state.subscription === traceSubscriptionName) continue;
    const filter = compileFilter(state.filter);
    const own = events.filter((event) => matchesRow(filter, event, event.tenant));
    if (own.length > 0) all.push(await factsOf(storage, state, own));
  }
  return all.flat();
}

async function factsOf(
  { checkpoints, waiting }: SubscriptionStorage,
  { subscription, shards }: SubscriptionState,
  events: readonly TracedEvent[],
): Promise<readonly HandlerFact[]> {
  const facts: HandlerFact[] = [];
  for (const [shard, own] of Map.groupBy(events, ({ stream }) => shardOf(stream, shards))) {
    const key = { subscription, shard };
    const progress = await checkpoints.load(key);
    const done = new Set(progress.done);
    const waits = new Map<Position, WaitingEvent>();
    for (const stream of new Set(own.map((event) => event.stream))) {
      if (!progress.blocked.includes(stream)) continue;
      for (const event of await waiting.next(key, stream, waitingMax)) {
        waits.set(event.position, event);
      }
    }
    for (const { position } of own) {
      const waited = waits.get(position);
      const reached = progress.position !== undefined && progress.position >= position;
      facts.push(
        waited === undefined
          ? { subscription, position, state: reached || done.has(position) ? 'passed' : 'pending' }
          : { subscription, position, state: 'waiting', ...failuresOf(waited) },
      );
    }
  }
  return facts;
}

function failuresOf({ failures, history }: WaitingEvent): Partial<HandlerFact> {
  const last = history.at(-1);
  return { failures, error: last?.error };
}
