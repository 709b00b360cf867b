// A process that only waits for events, and reports their ids.

import { openMongo } from '../../src/engines/mongodb/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface ReaderInput {
  readonly url: string;
  readonly database: string;
}

export type ReaderMessage =
  | { readonly kind: 'caughtUp' }
  | { readonly kind: 'event'; readonly eventId: string };

const { url, database } = childInput() as ReaderInput;
const { store } = await openMongo(url, { database });
for await (const item of store.subscribe()) {
  if (item.kind === 'caughtUp') tellParent({ kind: 'caughtUp' } satisfies ReaderMessage);
  if (item.kind !== 'events') continue;
  for (const { eventId } of item.events) {
    tellParent({ kind: 'event', eventId } satisfies ReaderMessage);
  }
}
