// The conformance suite of event stores, for our engines and for adapters of users. A case is skipped if it needs a
// capability that the engine lacks; the reason names the capability.

import assert from 'node:assert/strict';
import { aborted } from '../../../foundation/clock.ts';
import { appendCases, followingAppendCases } from './append.ts';
import { badInputCases } from './bad-input.ts';
import { callerTransactionCases } from './caller-transaction.ts';
import { closingCases } from './closing.ts';
import { concurrentAppendCases } from './concurrent-append.ts';
import { crossProcessCases } from './cross-process.ts';
import { deletionCases } from './deletion.ts';
import { durableCases } from './durable.ts';
import { erasureCases } from './erasure.ts';
import { eventFilterCases } from './event-filter.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { idempotentAppendCases } from './idempotent-append.ts';
import { multiStreamAppendCases } from './multi-stream-append.ts';
import { pageBytesCases } from './page-bytes.ts';
import { readAllCases } from './read-all.ts';
import { readStreamCases } from './read-stream.ts';
import { roundTripCases } from './round-trip.ts';
import { scavengeCases } from './scavenge.ts';
import { storeModelCases } from './model.ts';
import type { StoreCapabilities } from '../../../store/store-engine.ts';
import type { CaseBody, CaseContext, Need, StoreCases, StoreFixture } from './fixture.ts';
import { streamMetadataCases } from './stream-metadata.ts';
import { subscribeConcurrentlyCases } from './subscribe-concurrently.ts';
import { subscribeToStreamCases } from './subscribe-to-stream.ts';
import { subscribeCases } from './subscribe.ts';

export type { StoreFixture } from './fixture.ts';

export interface ConformanceCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  readonly needs?: keyof StoreCapabilities | undefined;
  /** Why the case is skipped: `needs multiStreamAppend`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: (signal?: AbortSignal) => Promise<void>;
}

/** The time limit of a case; no correct case takes this long. */
const caseMsMax = 180_000;

const topics: Readonly<Record<string, StoreCases>> = {
  append: appendCases,
  'idempotent append': idempotentAppendCases,
  'following append': followingAppendCases,
  'concurrent append': concurrentAppendCases,
  'multi-stream append': multiStreamAppendCases,
  'bad input': badInputCases,
  'round trip': roundTripCases,
  'read a stream': readStreamCases,
  'read all': readAllCases,
  'page size in bytes': pageBytesCases,
  filter: eventFilterCases,
  subscribe: subscribeCases,
  'subscribe to a stream': subscribeToStreamCases,
  'subscribe concurrently': subscribeConcurrentlyCases,
  'stream metadata': streamMetadataCases,
  deletion: deletionCases,
  scavenge: scavengeCases,
  erasure: erasureCases,
  model: storeModelCases,
  closing: closingCases,
  durable: durableCases,
  'cross-process': crossProcessCases,
  'caller transaction': callerTransactionCases,
};

/**
 * All cases, for any test runner. They share one store, which the last case closes.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { eventStoreConformance } from 'millrace/testing';
 *
 * const { capabilities } = openMemory().store;
 * const open = async () => openMemory().store;
 * for (const { name, skip, run } of eventStoreConformance({ capabilities, open })) {
 *   test(name, { skip: skip ?? false }, ({ signal }) => run(signal));
 * }
 */
export function eventStoreConformance(fixture: StoreFixture): readonly ConformanceCase[] {
  const { cases, close } = storeSuite(fixture);
  return [...cases, { name: 'closing: the store that the cases shared closes', run: close }];
}

/** The required part of a test runner; `test` of node:test fits. */
export interface ConformanceRunner {
  describe(name: string, body: () => void): unknown;
  test(
    name: string,
    options: { readonly skip: string | boolean },
    body: (context: { readonly signal: AbortSignal }) => Promise<void>,
  ): unknown;
  after(body: () => Promise<void>): unknown;
}

/**
 * Registers the suite with node:test.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { runConformance } from 'millrace/testing';
 *
 * runConformance(test, 'the event store in memory', {
 *   capabilities: openMemory().store.capabilities,
 *   open: async (options) => openMemory(options).store,
 * });
 */
export function runConformance(
  runner: ConformanceRunner,
  title: string,
  fixture: StoreFixture,
): void {
  const { cases, close } = storeSuite(fixture);
  runner.describe(title, () => {
    runner.after(close);
    for (const { name, skip, run } of cases) {
      runner.test(name, { skip: skip ?? false }, ({ signal }) => run(signal));
    }
  });
}

interface StoreSuite {
  readonly cases: readonly ConformanceCase[];
  readonly close: () => Promise<void>;
}

function storeSuite(fixture: StoreFixture): StoreSuite {
  let shared: Promise<EventStore> | undefined;
  const sharedStore = (): Promise<EventStore> => (shared ??= fixture.open());
  const cases = Object.entries(topics).flatMap(([topic, sentences]) =>
    Object.entries(sentences).map(([sentence, body]): ConformanceCase => {
      const { needs, run } = typeof body === 'function' ? { needs: [], run: body } : body;
      const need = needs.find((each) => each !== 'rawContent' && each !== 'ownServer');
      const skip = needs.map((each) => reasonToSkip(fixture, each)).find((each) => each);
      return {
        name: `${topic}: ${sentence}`,
        needs: need,
        skip,
        run: (signal) => runCase(fixture, sharedStore, run, signal),
      };
    }),
  );
  return {
    cases,
    async close() {
      await (await shared)?.[Symbol.asyncDispose]();
    },
  };
}

/** Capabilities that an engine has by default. */
const defaultCapabilities = new Set<Need>(['scavenge', 'exactTimes', 'hiddenEvents']);

function reasonToSkip(fixture: StoreFixture, need: Need): string | undefined {
  const has =
    need === 'rawContent'
      ? fixture.rawContent !== undefined
      : need === 'ownServer'
        ? fixture.isShared !== true
        : (fixture.capabilities[need] ?? defaultCapabilities.has(need));
  return has ? undefined : `needs ${need}`;
}

async function runCase(
  fixture: StoreFixture,
  sharedStore: () => Promise<EventStore>,
  body: CaseBody,
  runnerSignal: AbortSignal | undefined,
): Promise<void> {
  const store = await sharedStore();
  const tooLong = new AbortController();
  // The timer also keeps the process alive: the waits of an engine may not.
  const timer = setTimeout(() => tooLong.abort(), caseMsMax);
  const signal =
    runnerSignal === undefined ? tooLong.signal : AbortSignal.any([tooLong.signal, runnerSignal]);
  const opened: EventStore[] = [];
  const closedLater = (each: EventStore): EventStore => {
    opened.push(each);
    return each;
  };
  const context: CaseContext = {
    store,
    signal,
    capabilities: fixture.capabilities,
    open: async (options) => closedLater(await fixture.open(options)),
    async reopen(each) {
      assert.ok(fixture.reopen !== undefined, missing('reopen'));
      return closedLater(await fixture.reopen(each));
    },
    async second(each) {
      assert.ok(fixture.second !== undefined, missing('second'));
      return closedLater(await fixture.second(each));
    },
    async inTransaction(each, work) {
      assert.ok(fixture.inTransaction !== undefined, missing('inTransaction'));
      return fixture.inTransaction(each, work);
    },
    async rawContent(each) {
      assert.ok(fixture.rawContent !== undefined, missing('rawContent'));
      return fixture.rawContent(each);
    },
  };
  let stopWaiting = (): void => undefined;
  const stopped = new Promise<never>((_resolve, reject) => {
    const onAbort = (): void =>
      reject(
        tooLong.signal.aborted
          ? new assert.AssertionError({ message: `still waiting after ${caseMsMax} ms` })
          : aborted(signal),
      );
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    stopWaiting = () => signal.removeEventListener('abort', onAbort);
  });
  try {
    await Promise.race([body(context), stopped]);
  } finally {
    stopWaiting();
    clearTimeout(timer);
    for (const each of opened.toReversed()) await each[Symbol.asyncDispose]();
  }
}

/** An engine with a capability needs a fixture that can test it. */
function missing(name: keyof StoreFixture): string {
  return `the engine has the capability, but its fixture has no ${name}`;
}
