// Readers in this process and in other processes, with the events they have received.

import { hasCode } from '../../src/foundation/error.ts';
import type { EventStore, SubscribeOptions } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import type { EventLocation } from '../../src/testing/history.ts';
import type { ReaderInput, ReaderMessage } from './reader-main.ts';
import { locationOf, until } from './rig.ts';

export interface Follower {
  readonly delivered: readonly EventLocation[];
  /** Resolves when an event with this id was delivered. */
  has(eventId: string): Promise<void>;
  caughtUp(): Promise<void>;
}

/** Follows in this process; a failed subscription fails every wait. */
export function follow(
  store: EventStore,
  options: SubscribeOptions = {},
): Follower & AsyncDisposable {
  const leaving = new AbortController();
  const delivered: EventLocation[] = [];
  let isCaughtUp = false;
  let failure: unknown;
  const running = (async () => {
    for await (const item of store.subscribe({ ...options, signal: leaving.signal })) {
      if (item.kind === 'events') delivered.push(...item.events.map(locationOf));
      else if (item.kind === 'caughtUp') isCaughtUp = true;
    }
  })().catch((error: unknown) => {
    if (!hasCode(error, 'STORE_CLOSED')) failure = error;
  });
  const wait = async (what: string, holds: () => boolean): Promise<void> => {
    await until(what, () => failure !== undefined || holds());
    if (failure !== undefined) throw failure as Error;
  };
  return {
    ...followerOf(delivered, () => isCaughtUp, wait),
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await running;
    },
  };
}

export interface ReaderProcess extends AsyncDisposable {
  readonly child: Child;
  follower(name: string): Follower;
}

export function startReader(input: ReaderInput): ReaderProcess {
  const child = startChild(new URL('./reader-main.ts', import.meta.url), { input });
  const delivered = new Map<string, EventLocation[]>();
  const caughtUp = new Set<string>();
  let end: unknown;
  for (const { name } of input.subscriptions) delivered.set(name, []);
  child.onMessage((message) => {
    const { name, kind, locations } = message as ReaderMessage;
    delivered.get(name)?.push(...locations);
    if (kind === 'caughtUp') caughtUp.add(name);
  });
  void child.ended.then((how) => (end = how));
  const wait = async (what: string, holds: () => boolean): Promise<void> => {
    await until(what, () => end !== undefined || holds());
    if (!holds()) throw new Error(`the reader ended with ${String(end)}\n${child.errors()}`);
  };
  return {
    child,
    follower: (name) => followerOf(delivered.get(name) ?? [], () => caughtUp.has(name), wait),
    async [Symbol.asyncDispose]() {
      await child.kill();
    },
  };
}

function followerOf(
  delivered: readonly EventLocation[],
  isCaughtUp: () => boolean,
  wait: (what: string, holds: () => boolean) => Promise<void>,
): Follower {
  let checked = 0;
  const seen = new Set<string>();
  return {
    delivered,
    has: (eventId) =>
      wait(`delivery of ${eventId}`, () => {
        for (; checked < delivered.length; checked += 1)
          seen.add(delivered[checked]?.eventId ?? '');
        return seen.has(eventId);
      }),
    caughtUp: () => wait('being caught up', isCaughtUp),
  };
}
