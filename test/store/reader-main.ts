// A reader process with live subscriptions, which reports their events to the parent.

import type { EventFilter } from '../../src/store/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { EventLocation } from '../../src/testing/history.ts';
import { openStore, locationOf, type EngineName } from './rig.ts';

export interface ReaderInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly subscriptions: readonly ReaderSubscription[];
  readonly pollIntervalMs?: number | undefined;
}

export interface ReaderSubscription {
  readonly name: string;
  readonly pageSize: number;
  readonly filter: EventFilter;
}

export interface ReaderMessage {
  readonly name: string;
  readonly kind: 'events' | 'caughtUp';
  readonly locations: readonly EventLocation[];
}

const input = childInput() as ReaderInput;
// Only the subscriptions keep this process alive.
process.channel?.unref();
const store = await openStore(input.engine, input.url, input);
await Promise.all(
  input.subscriptions.map(async ({ name, pageSize, filter }) => {
    for await (const item of store.subscribe({ pageSize, filter })) {
      if (item.kind === 'events')
        report({ name, kind: 'events', locations: item.events.map(locationOf) });
      else if (item.kind === 'caughtUp') report({ name, kind: 'caughtUp', locations: [] });
    }
  }),
);

function report(message: ReaderMessage): void {
  tellParent(message);
}
