// The event store conformance suite on a real KurrentDB or EventStoreDB. The server cannot be emptied,
// so cases that need an empty store are skipped with that reason.

import { describe, test } from 'node:test';
import { openKurrent } from './index.ts';
import {
  eventStoreConformance,
  type StoreFixture,
} from '../../testing/conformance/store/event-store.ts';
import type { EventStore, EventStoreOptions } from '../../store/index.ts';
import { ownedRole } from '../../testing/owned-role.ts';

const url = process.env['MILLRACE_TEST_KURRENTDB'];
const title = 'the event store, on the KurrentDB of MILLRACE_TEST_KURRENTDB';
const needsEmpty = 'needs an empty server';

class NeedsEmptyServer extends Error {}

if (url === undefined) {
  test(title, { skip: 'MILLRACE_TEST_KURRENTDB is not set' });
} else {
  const { fixture, close } = await fixtureAt(url);
  describe(title, () => {
    for (const { name, skip, run } of eventStoreConformance(fixture)) {
      test(name, { skip: skip ?? false }, async (context) => {
        try {
          await run(context.signal);
        } catch (error) {
          if (!(error instanceof NeedsEmptyServer)) throw error;
          context.skip(needsEmpty);
        }
      });
    }
    test('the connection closes', close);
  });
}

async function fixtureAt(
  target: string,
): Promise<{ readonly fixture: StoreFixture; readonly close: () => Promise<void> }> {
  const openAt = async (options?: EventStoreOptions): Promise<EventStore> =>
    ownedRole(await openKurrent(target, options), 'store');
  const shared = await openAt();
  let isGiven = false;
  const fixture: StoreFixture = {
    capabilities: shared.capabilities,
    async open() {
      // All cases share the first store; a second one would have to be empty.
      if (isGiven) throw new NeedsEmptyServer(needsEmpty);
      isGiven = true;
      return shared;
    },
    async reopen(store, options) {
      await store[Symbol.asyncDispose]();
      return openAt(options);
    },
    second: (_store, options) => openAt(options),
  };
  return { fixture, close: async () => shared[Symbol.asyncDispose]() };
}
