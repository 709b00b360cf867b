// The cost of a pattern: one consumer reads the same messages from one stream and from five hundred. The
// ratio compares Millrace with itself.

import { setTimeout } from 'node:timers/promises';
import type { Bus, BusConsumer } from '../../src/bus/index.ts';
import { ours, type Case, type Runner } from '../benchmark.ts';
import { inBatches, sampleMessages, type SampleMessage } from '../outbox/sample-messages.ts';
import type { BusTarget } from './bus-targets.ts';

const streams = 500;
const alone = 'one stream';
const pattern = 'bench.*.sent';
/** A typical batch of a busy consumer. */
const consuming = { concurrency: 50, maxInFlight: 500 } as const;
const goals = [{ vs: alone, ratioMin: 0.5 }];
/** Long enough for several polls of all streams. */
const idleMs = { quick: 1_500, full: 4_000 } as const;

export function wildcardCases(
  targets: readonly BusTarget[],
  { quick }: { readonly quick: boolean },
): readonly Case[] {
  return targets.flatMap((target): Case[] => {
    const { engine } = target;
    const both = (runner: (bus: Bus, count: number) => Runner): Case['subjects'] => [
      { name: ours, setup: async () => runner(await target.open(), streams) },
      { name: alone, setup: async () => runner(await target.open(), 1) },
    ];
    return [
      {
        name: `drain ${streams} streams / ${engine}`,
        measure: 'throughput',
        batch: quick ? 5_000 : 20_000,
        goals,
        subjects: both(draining),
      },
      {
        name: `follow ${streams} streams / ${engine}`,
        measure: 'throughput',
        batch: quick ? 5_000 : 20_000,
        goals,
        subjects: both(following),
      },
      {
        name: `CPU of a second, idle over ${streams} streams / ${engine}`,
        measure: 'latency',
        batch: 1,
        goals,
        subjects: both((bus, count) =>
          idling(bus, count, { ms: quick ? idleMs.quick : idleMs.full, target }),
        ),
      },
    ];
  });
}

/** All messages are published before the consumer starts. */
function draining(bus: Bus, count: number): Runner {
  let consumer: BusConsumer | undefined;
  return {
    prepare: (n) => publish(bus, count, sampleMessages(n)),
    async run(n) {
      const all = counting(n);
      consumer = await bus.consume(
        { group: 'reader', subject: pattern },
        () => all.handle(),
        consuming,
      );
      await all.done;
      return all.handled();
    },
    finish: async () => consumer?.stop(),
    teardown: async () => bus[Symbol.asyncDispose](),
  };
}

/** Messages are published and read at the same time, a hundred per call. */
function following(bus: Bus, count: number): Runner {
  let consumer: BusConsumer | undefined;
  let all = counting(0);
  return {
    async prepare(n) {
      // Each stream exists before the measurement.
      await publish(bus, count, sampleMessages(count));
      const before = counting(count);
      all = before;
      consumer = await bus.consume(
        { group: 'reader', subject: pattern },
        () => all.handle(),
        consuming,
      );
      await before.done;
      all = counting(n);
    },
    async run(n) {
      for (const batch of inBatches(sampleMessages(n), 100)) await publish(bus, count, batch);
      await all.done;
      return all.handled();
    },
    finish: async () => consumer?.stop(),
    teardown: async () => bus[Symbol.asyncDispose](),
  };
}

/** Records the CPU time of this process and of the server per second while nothing happens. */
function idling(
  bus: Bus,
  count: number,
  { ms, target }: { readonly ms: number; readonly target: BusTarget },
): Runner {
  let consumer: BusConsumer | undefined;
  const usedMs = async (): Promise<number> => {
    const serverMs = (await target.serverCpuMs?.()) ?? 0;
    const { user, system } = process.cpuUsage();
    return serverMs + (user + system) / 1_000;
  };
  return {
    async prepare() {
      await publish(bus, count, sampleMessages(count));
      const all = counting(count);
      consumer = await bus.consume(
        { group: 'reader', subject: pattern },
        () => all.handle(),
        consuming,
      );
      await all.done;
      // Work that was started has ended by then.
      await setTimeout(200);
    },
    async run(_n, record) {
      const beforeMs = await usedMs();
      await setTimeout(ms);
      record(((await usedMs()) - beforeMs) / (ms / 1_000));
    },
    finish: async () => consumer?.stop(),
    teardown: async () => bus[Symbol.asyncDispose](),
  };
}

function counting(n: number) {
  const all = Promise.withResolvers<void>();
  let handled = 0;
  return {
    done: all.promise,
    handled: () => handled,
    async handle(): Promise<void> {
      handled += 1;
      if (handled === n) all.resolve();
    },
  };
}

let next = 0;

/** Publishes to the streams in turn, and continues after the last one used. */
async function publish(bus: Bus, count: number, messages: readonly SampleMessage[]): Promise<void> {
  for (const batch of inBatches(messages)) {
    await bus.publishMany(
      batch.map((payload) => {
        next += 1;
        return { subject: `bench.s${next % count}.sent`, payload };
      }),
    );
  }
}
