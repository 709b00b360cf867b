// The conformance suite of trace indexes.

import assert from 'node:assert/strict';
import { toPosition } from '../../../store/position.ts';
import type { TraceEntry, TraceIndex } from '../../../traces/trace-index.ts';

export interface TraceIndexCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

let runs = 0;

/**
 * The cases, for any test runner. Each uses separate flows; nothing else may use the index.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { test } from 'node:test';
 * import { traceIndexConformance } from 'millrace/testing';
 *
 * for (const { name, run } of traceIndexConformance(async () => openMemory().traces)) test(name, run);
 */
export function traceIndexConformance(open: () => Promise<TraceIndex>): readonly TraceIndexCase[] {
  const cases: Readonly<Record<string, (index: TraceIndex, flow: string) => Promise<void>>> = {
    async 'returns entries in the order of their positions'(index, flow) {
      const entries = [7, 3, 4_000_000_000_000, 5].map((at) => entryOf(flow, at));
      await index.add(entries);
      assert.deepEqual(await index.find(flow, { limit: 10 }), [
        entryOf(flow, 3),
        entryOf(flow, 5),
        entryOf(flow, 7),
        entryOf(flow, 4_000_000_000_000),
      ]);
      assert.deepEqual(await index.find(`${flow}0`, { limit: 10 }), []);
    },

    async 'adding an entry again changes nothing, also within one batch'(index, flow) {
      const entry = entryOf(flow, 1);
      await index.add([entry, entry]);
      await index.add([entryOf(flow, 1, { stream: 'a.b.v1-core-other' }), entryOf(flow, 2)]);
      assert.deepEqual(await index.find(flow, { limit: 10 }), [entry, entryOf(flow, 2)]);
    },

    async 'concurrent additions of the same entries store each once'(index, flow) {
      const entries = Array.from({ length: 50 }, (_, at) => entryOf(flow, at + 1));
      await Promise.all(Array.from({ length: 8 }, () => index.add(entries)));
      assert.deepEqual(await index.find(flow, { limit: 100 }), entries);
    },

    async 'stores any text of an event'(index, flow) {
      const odd = entryOf(`${flow} Zoë "quoted" ' \\ 🙂 %_`, 1, { tenant: '', stream: "it's" });
      await index.add([odd]);
      assert.deepEqual(await index.find(odd.correlationId, { limit: 1 }), [odd]);
    },

    async 'finds the entries of one tenant'(index, flow) {
      const tenants = ['core', 'demo', 'core', 'core-eu'];
      await index.add(tenants.map((tenant, at) => entryOf(flow, at + 1, { tenant })));
      const found = await index.find(flow, { tenant: 'core', limit: 10 });
      assert.deepEqual(
        found.map(({ position }) => position),
        [toPosition(1), toPosition(3)],
      );
      assert.deepEqual(await index.find(flow, { tenant: 'unknown', limit: 10 }), []);
    },

    async 'returns the first entries, up to the limit'(index, flow) {
      const entries = Array.from({ length: 2_500 }, (_, at) => entryOf(flow, at + 1));
      await index.add(entries);
      assert.deepEqual(await index.find(flow, { limit: 999 }), entries.slice(0, 999));
      assert.deepEqual(await index.find(flow, { limit: 3_000 }), entries);
    },

    async 'adding no entries changes nothing'(index, flow) {
      await index.add([]);
      assert.deepEqual(await index.find(flow, { limit: 1 }), []);
    },

    async 'removes the oldest entries first, a batch at a time, and keeps recent ones'(
      index,
      flow,
    ) {
      const times = [30, 10, 40, 20, 50];
      await index.add(times.map((recordedAtMs, at) => entryOf(flow, at + 1, { recordedAtMs })));
      const left = async (): Promise<number[]> =>
        (await index.find(flow, { limit: 10 })).map(({ recordedAtMs }) => recordedAtMs);
      assert.equal(await index.sweep(40, 2), 2);
      assert.deepEqual(await left(), [30, 40, 50]);
      assert.equal(await index.sweep(40, 2), 1);
      assert.equal(await index.sweep(40, 2), 0);
      assert.deepEqual(await left(), [40, 50]);
      await index.sweep(100, 10);
    },
  };
  return Object.entries(cases).map(([name, body]) => ({
    name,
    async run() {
      runs += 1;
      await body(await open(), `flow-${process.pid}-${runs}`);
    },
  }));
}

function entryOf(flow: string, at: number, more: Partial<TraceEntry> = {}): TraceEntry {
  return {
    correlationId: flow,
    position: toPosition(at),
    tenant: 'core',
    stream: 'banking.account.v1-core-a1',
    revision: at,
    recordedAtMs: 1_759_226_400_000 + at,
    ...more,
  };
}
