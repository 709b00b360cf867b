// A worker with effects outside the database: claims each event, reports the effect to its parent, and can
// be held before the confirmation.

import {
  startSubscription,
  subscription,
  type ProcessedEvents,
  type SubscriptionStorage,
} from '../../src/subscriptions/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openEngine, type EngineName } from '../store/rig.ts';

export interface ClaimWorkerInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly worker: string;
  /** A standby worker tries to take over three times within this time. */
  readonly leaseMs: number;
  readonly subscription: string;
  /** The handler of this event has its effect and never ends. */
  readonly holdAt?: string | undefined;
}

export type ClaimWorkerMessage =
  | { readonly kind: 'owns' }
  | { readonly kind: 'act'; readonly eventId: string; readonly key: string }
  /** The number of events that are being handled. */
  | { readonly kind: 'inFlight'; readonly count: number };

/** Still valid, in most runs, when the other worker takes over. */
const shortClaimMs = 2_000;

const {
  engine,
  url,
  worker,
  leaseMs,
  subscription: name,
  holdAt,
} = childInput() as ClaimWorkerInput;
const report = (message: ClaimWorkerMessage): void => tellParent(message);
const { store, subscriptions: storage } = await openEngine(engine, url);
/** Shortens the claim of the held event only; the handler timeout stays long. */
const subscriptions: SubscriptionStorage = {
  ...storage,
  processed: {
    ...storage.processed,
    claim: (key, options) =>
      storage.processed.claim(key, {
        ...options,
        leaseMs: key.eventId === holdAt ? shortClaimMs : options.leaseMs,
      }),
  } satisfies ProcessedEvents,
};
const definition = subscription({
  name,
  timeoutMs: 600_000,
  // Enough lanes that no other event waits for the held one.
  lanes: 200,
  async handler({ eventId }, { claim, idempotencyKey }) {
    if (!(await claim())) return;
    report({ kind: 'act', eventId, key: idempotencyKey });
    if (eventId === holdAt) await new Promise(() => undefined);
  },
});
const options = { worker, leaseMs, pollMs: 100 };
const runner = await startSubscription({ store, subscriptions }, definition, options);
let reported = -1;
setInterval(() => {
  const [shard] = runner.status.shards;
  if (shard === undefined) return;
  if (reported === -1) report({ kind: 'owns' });
  if (shard.inFlight !== reported) report({ kind: 'inFlight', count: shard.inFlight });
  reported = shard.inFlight;
}, 20);
