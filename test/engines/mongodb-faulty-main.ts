// A process that kills or stops itself in the middle of an append.

import { MongoClient } from 'mongodb';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import type { StreamAppend } from '../../src/store/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { faultyDb, type FaultPoint } from './faulty-db.ts';

export interface FaultyInput {
  readonly url: string;
  readonly database: string;
  readonly point: FaultPoint;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
  readonly appends: readonly StreamAppend[];
  /** Replaces every payload by one of this size, which is too large for the child's input. */
  readonly payloadChars?: number | undefined;
}

export type FaultyMessage =
  | { readonly kind: 'fault' }
  | { readonly kind: 'appended'; readonly revisions: readonly number[] }
  | { readonly kind: 'rejected'; readonly code: string };

const input = childInput() as FaultyInput;
const client = new MongoClient(input.url);
const db = faultyDb(client.db(input.database), input.point, async () => {
  await new Promise<void>((resolve) => {
    process.send?.({ kind: 'fault' } satisfies FaultyMessage, undefined, undefined, () =>
      resolve(),
    );
  });
  process.kill(process.pid, input.signal);
  // The signal can take one turn of the event loop to arrive.
  await new Promise((resolve) => setTimeout(resolve, input.signal === 'SIGKILL' ? 60_000 : 50));
});
const engine = await openMongo(db);
const { store } = engine;
try {
  const results = await store.appendMany(input.appends.map(withLargePayloads));
  report({ kind: 'appended', revisions: results.map(({ revision }) => revision) });
} catch (error) {
  report({ kind: 'rejected', code: (error as { readonly code: string }).code });
}
await engine[Symbol.asyncDispose]();
await client.close();
process.channel?.unref();

function report(message: FaultyMessage): void {
  tellParent(message);
}

function withLargePayloads(append: StreamAppend): StreamAppend {
  const { payloadChars } = input;
  if (payloadChars === undefined) return append;
  const payload = 'x'.repeat(payloadChars);
  return { ...append, events: append.events.map((event) => ({ ...event, payload })) };
}
