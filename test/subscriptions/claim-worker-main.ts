// A worker whose effects are outside of the database: claims each, acts by telling the one that
// started it, and can be held between the act and its confirmation.

import {
  startSubscription,
  subscription,
  type SubscriptionHost,
} from '../../src/subscriptions/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openStore, type EngineName } from '../store/rig.ts';

export interface ClaimWorkerInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly worker: string;
  /** Acts for this event, and never comes to an end. */
  readonly holdAt?: string;
}

export type ClaimWorkerMessage =
  | { readonly kind: 'owns' }
  | { readonly kind: 'act'; readonly eventId: string; readonly key: string }
  /** How many events were given out and are not done. */
  | { readonly kind: 'inFlight'; readonly count: number };

const { engine, url, worker, holdAt } = childInput() as ClaimWorkerInput;
const tell = (message: ClaimWorkerMessage): void => tellParent(message);
const store = (await openStore(engine, url)) as EventStore & SubscriptionHost;
const each = subscription({
  name: 'sub:rig:claims:v1',
  timeoutMs: 8_000,
  // Nobody is behind the one that is held.
  lanes: 200,
  async handler({ eventId }, { claim, idempotencyKey }) {
    if (!(await claim())) return;
    tell({ kind: 'act', eventId, key: idempotencyKey });
    if (eventId === holdAt) await new Promise(() => undefined);
  },
});
const runner = await startSubscription(store, each, { worker, leaseMs: 5_000, pollMs: 100 });
let told = -1;
setInterval(() => {
  const [shard] = runner.status.shards;
  if (shard === undefined) return;
  if (told === -1) tell({ kind: 'owns' });
  if (shard.inFlight !== told) tell({ kind: 'inFlight', count: shard.inFlight });
  told = shard.inFlight;
}, 20);
