// Subjects that one process has for itself, and readers that it tells before it stores.

import assert from 'node:assert/strict';
import type { Bus } from './bus.ts';
import type { NewMessage } from './bus-message.ts';
import {
  eventually,
  queue,
  rejectsWith,
  secondOf,
  type BusCases,
} from './bus-fixture.conformance.ts';

const first = (n: number, subject = queue): NewMessage => ({
  subject,
  id: `m-${n}`,
  payload: { n },
  durability: 'readers-first',
});
const synced = (n: number): NewMessage => ({ subject: queue, id: `m-${n}`, payload: { n } });

/** What a reader sees, each once: `early` or `stored` says how it came first. */
async function following(
  bus: Bus,
): Promise<{ readonly seen: string[]; readonly stored: string[] } & AsyncDisposable> {
  const seen: string[] = [];
  const stored: string[] = [];
  const known = new Set<string>();
  const see = (id: string, how: string): void => {
    if (!known.has(id)) seen.push(`${id} ${how}`);
    known.add(id);
  };
  const live = await bus.subscribe('gbe.tasks.>', { onEarly: ({ id }) => see(id, 'early') });
  const reading = (async () => {
    for await (const { id } of live) {
      stored.push(id);
      see(id, 'stored');
    }
  })();
  return {
    seen,
    stored,
    async [Symbol.asyncDispose]() {
      await live[Symbol.asyncDispose]();
      await reading;
    },
  };
}

async function inLog(bus: Bus): Promise<string[]> {
  return (await Array.fromAsync(bus.read(queue))).map(({ id }) => id);
}

export const claimCases: BusCases = {
  async 'a message is readers-first only where somebody has its subject alone'(
    bus,
    { capabilities },
  ) {
    const code = capabilities.readersFirst ? 'BUS_INVALID' : 'NOT_SUPPORTED';
    await rejectsWith(() => bus.publish(first(1)), code);
    await rejectsWith(() => bus.publishMany([synced(2), first(3)]), code);
    assert.deepEqual(await inLog(bus), []);
    if (!capabilities.readersFirst) await rejectsWith(() => bus.claim(queue), 'NOT_SUPPORTED');
  },
};

export const earlyCases: BusCases = {
  async 'a reader has it within the call, and once more when it is stored'(bus) {
    await using claim = await bus.claim('gbe.tasks.>');
    assert.ok(claim);
    await using reader = await following(bus);
    const happened: string[] = [];
    for (const n of [1, 2, 3]) {
      // A reader that has just begun, or is behind, has it when it is stored.
      await eventually('it reads along', async () => reader.stored.length === n - 1);
      const published = bus.publish(first(n));
      await Promise.resolve();
      happened.push(...reader.seen.slice(n - 1));
      await published;
    }
    await eventually('all are stored', async () => reader.stored.length === 3);
    assert.deepEqual(happened, ['m-1 early', 'm-2 early', 'm-3 early']);
    assert.deepEqual(reader.stored, ['m-1', 'm-2', 'm-3']);
    assert.equal(reader.seen.length, 3);
  },

  async 'behind one that is not, it keeps its place'(bus) {
    await using claim = await bus.claim('gbe.tasks.>');
    assert.ok(claim);
    await using reader = await following(bus);
    await bus.publish(first(0));
    await eventually('it reads along', async () => reader.stored.length === 1);
    const all = [first(1), synced(2), first(3), first(4)].map((each) => bus.publish(each));
    await Promise.all(all);
    await eventually('all are stored', async () => reader.stored.length === 5);
    const ids = reader.seen.map((each) => each.split(' ')[0]);
    assert.deepEqual(ids, ['m-0', 'm-1', 'm-2', 'm-3', 'm-4']);
    assert.deepEqual(ids, await inLog(bus));
    assert.deepEqual(reader.seen.slice(1, 3), ['m-1 early', 'm-2 stored']);
    // What readers were not told of is behind them: they are told first again.
    await bus.publish(first(5));
    assert.equal(reader.seen[5], 'm-5 early');
  },

  async 'two have not the same subjects, and nobody else publishes there'(bus, context) {
    await using second = await secondOf(context);
    const claim = await bus.claim('gbe.tasks.*.queue');
    await rejectsWith(() => second.claim('gbe.tasks.>'), 'BUS_CLAIMED');
    await rejectsWith(() => second.publish(synced(1)), 'BUS_CLAIMED');
    await second.publish({ subject: 'gbe.events.system.health', payload: 1 });
    await bus.publish(first(2));
    await bus.publish(synced(3));
    assert.deepEqual(await inLog(second), ['m-2', 'm-3']);
    await claim[Symbol.asyncDispose]();
    await rejectsWith(() => bus.publish(first(4)), 'BUS_INVALID');
    await second.publish(synced(5));
    await using theirs = await second.claim('gbe.tasks.>');
    assert.ok(theirs);
    await second.publish(first(6));
    await rejectsWith(() => bus.publish(synced(7)), 'BUS_CLAIMED');
    assert.deepEqual(await inLog(bus), ['m-2', 'm-3', 'm-5', 'm-6']);
  },

  async 'a claim ends with its bus, also of one that gave nothing back'(bus, context) {
    const second = await secondOf(context);
    await second.claim(queue);
    await second.publish(first(1));
    await rejectsWith(() => bus.publish(synced(2)), 'BUS_CLAIMED');
    await second[Symbol.asyncDispose]();
    await bus.publish(synced(3));
    assert.deepEqual(await inLog(bus), ['m-1', 'm-3']);
  },
};
