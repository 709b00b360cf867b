// A KurrentDB or EventStoreDB as an event store.

import type { Client } from './client.ts';
import {
  kurrentdbEventStore,
  type KurrentdbEventStore,
  type KurrentOptions,
} from './event-store.ts';

export interface KurrentEngine extends AsyncDisposable {
  readonly store: KurrentdbEventStore;
}

/**
 * Opens KurrentDB or EventStoreDB, by URL or with your client. Your client is left open, and is not replaced when it
 * fails.
 *
 * Do not load the older client, `@eventstore/db-client`, into the same process: both register their messages under
 * the same global names.
 *
 * @example
 * import { openKurrent } from 'millrace/engines/kurrentdb';
 *
 * await using db = await openKurrent('kurrentdb://localhost:2113?tls=false');
 * for await (const { event, ack } of db.store.consume({ group: 'mailer' })) {
 *   console.log(event.type);
 *   await ack();
 * }
 */
export async function openKurrent(
  target: string | Client,
  options: KurrentOptions = {},
): Promise<KurrentEngine> {
  const store = await kurrentdbEventStore(target, options);
  return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
