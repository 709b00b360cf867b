// A worker whose effects are outside of the database: claims each, acts by telling the one that
// started it, and can be held between the act and its confirmation.

import {
  startSubscription,
  subscription,
  type ProcessedEvents,
  type SubscriptionHost,
  type SubscriptionStorage,
} from '../../src/subscriptions/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openStore, type EngineName } from '../store/rig.ts';

export interface ClaimWorkerInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly worker: string;
  /** A worker that stands by tries to take over three times in this time. */
  readonly leaseMs: number;
  readonly subscription: string;
  /** Acts for this event, and never comes to an end. */
  readonly holdAt?: string;
}

export type ClaimWorkerMessage =
  | { readonly kind: 'owns' }
  | { readonly kind: 'act'; readonly eventId: string; readonly key: string }
  /** How many events were given out and are not done. */
  | { readonly kind: 'inFlight'; readonly count: number };

/** Still held, in most runs, when the other worker takes over. */
const heldClaimMs = 2_000;

const {
  engine,
  url,
  worker,
  leaseMs,
  subscription: name,
  holdAt,
} = childInput() as ClaimWorkerInput;
const tell = (message: ClaimWorkerMessage): void => tellParent(message);
const store = (await openStore(engine, url)) as EventStore & SubscriptionHost;
const { subscriptions: storage } = store;
/** The claim of the held event expires soon, though its handler may take minutes. */
const host = Object.create(store, {
  subscriptions: {
    value: {
      ...storage,
      processed: {
        ...storage.processed,
        claim: (key, options) =>
          storage.processed.claim(key, {
            ...options,
            leaseMs: key.eventId === holdAt ? heldClaimMs : options.leaseMs,
          }),
      } satisfies ProcessedEvents,
    } satisfies SubscriptionStorage,
  },
}) as typeof store;
const each = subscription({
  name,
  timeoutMs: 600_000,
  // No other event is queued after the one that is held.
  lanes: 200,
  async handler({ eventId }, { claim, idempotencyKey }) {
    if (!(await claim())) return;
    tell({ kind: 'act', eventId, key: idempotencyKey });
    if (eventId === holdAt) await new Promise(() => undefined);
  },
});
const runner = await startSubscription(host, each, { worker, leaseMs, pollMs: 100 });
let told = -1;
setInterval(() => {
  const [shard] = runner.status.shards;
  if (shard === undefined) return;
  if (told === -1) tell({ kind: 'owns' });
  if (shard.inFlight !== told) tell({ kind: 'inFlight', count: shard.inFlight });
  told = shard.inFlight;
}, 20);
