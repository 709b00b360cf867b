// Reading without a group: live subscriptions without stored state, and finite replays.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { Bus, BusSubscription } from '../../../bus/bus.ts';
import type { BusMessage } from '../../../bus/bus-message.ts';
import {
  bytes,
  fetchSome,
  numbersOf,
  publishNumbers,
  queue,
  secondOf,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';

async function take(subscription: BusSubscription, count: number): Promise<BusMessage[]> {
  const messages: BusMessage[] = [];
  for await (const message of subscription) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

async function numbersIn(bus: Bus, ...how: Parameters<Bus['read']>): Promise<number[]> {
  return numbersOf(await Array.fromAsync(bus.read(...how)));
}

/** Returns a time by the broker's clock that is later than all messages of the stream. */
async function laterThan(bus: Bus, subject: string): Promise<Date> {
  const lastMs = (await bus.stream(subject))?.lastStoredAt?.getTime() ?? 0;
  await eventually('the clock moved', async () => {
    await bus.publish({ subject: 'gbe.events.system.health', payload: 1 });
    const tick = await bus.stream('gbe.events.system.health');
    return (tick?.lastStoredAt?.getTime() ?? 0) > lastMs + 1;
  });
  return new Date(lastMs + 1);
}

export const subscribeCases: BusCases = {
  async 'a subscription gets new messages only'(bus) {
    await publishNumbers(bus, 3);
    await using live = await bus.subscribe(queue);
    await bus.publish({ subject: queue, payload: { n: 3 } });
    assert.deepEqual(numbersOf(await take(live, 1)), [3]);
  },

  async 'a subscription from the start gets existing and new messages without a gap'(bus) {
    await publishNumbers(bus, 3);
    await using live = await bus.subscribe(queue, { from: 'start' });
    await publishNumbers(bus, 3);
    assert.deepEqual(numbersOf(await take(live, 6)), [0, 1, 2, 0, 1, 2]);
  },

  async 'delivers existing messages in batches'(bus) {
    await publishNumbers(bus, 3);
    await using live = await bus.subscribe(queue, { from: 'start' });
    const batches: number[][] = [];
    for await (const batch of live.batches()) {
      batches.push(numbersOf(batch));
      if (batches.flat().length === 3) await bus.publish({ subject: queue, payload: { n: 3 } });
      if (batches.flat().length === 4) break;
    }
    assert.deepEqual(batches.flat(), upTo(4));
    assert.ok(batches.every(({ length }) => length > 0));
    assert.ok(batches.length < 4);
  },

  async 'starts at a sequence'(bus) {
    const published = await publishNumbers(bus, 5);
    const from = { sequence: published[2]?.sequence ?? '' };
    await using live = await bus.subscribe(queue, { from });
    assert.deepEqual(numbersOf(await take(live, 3)), [2, 3, 4]);
  },

  async 'starts at a time'(bus) {
    await publishNumbers(bus, 2);
    const time = await laterThan(bus, queue);
    await bus.publish({ subject: queue, payload: { n: 2 } });
    await using live = await bus.subscribe(queue, { from: { time } });
    assert.deepEqual(numbersOf(await take(live, 1)), [2]);
  },

  async 'a pattern includes subjects created later, each in its order'(bus) {
    await using live = await bus.subscribe('gbe.tasks.*.terminal');
    for (const type of ['a', 'b']) await publishNumbers(bus, 3, `gbe.tasks.${type}.terminal`);
    await publishNumbers(bus, 3);
    const messages = await take(live, 6);
    for (const type of ['a', 'b']) {
      const ofOne = messages.filter(({ subject }) => subject === `gbe.tasks.${type}.terminal`);
      assert.deepEqual(numbersOf(ofOne), upTo(3));
    }
  },

  async 'every subscriber gets all messages'(bus) {
    const all = await Promise.all(upTo(3).map(() => bus.subscribe(queue)));
    await publishNumbers(bus, 10);
    for (const live of all) {
      assert.deepEqual(numbersOf(await take(live, 10)), upTo(10));
      await live[Symbol.asyncDispose]();
    }
  },

  async 'a subscription takes no messages from a group'(bus) {
    const group = await bus.group(workers);
    await using live = await bus.subscribe(queue);
    await publishNumbers(bus, 3);
    assert.equal((await take(live, 3)).length, 3);
    assert.deepEqual(numbersOf(await fetchSome(group, 3)), upTo(3));
  },

  async 'an aborted signal or disposal stops the loop'(bus) {
    const stopping = new AbortController();
    const one = await bus.subscribe(queue, { signal: stopping.signal });
    const other = await bus.subscribe(queue);
    const [first, second] = [take(one, 1), take(other, 1)];
    stopping.abort();
    assert.deepEqual(await first, []);
    await other[Symbol.asyncDispose]();
    assert.deepEqual(await second, []);
  },

  async 'reports and skips malformed messages'(_bus, context) {
    const reported: object[] = [];
    const log: Observer['log'] = {
      debug: () => undefined,
      info: () => undefined,
      // An engine may also log a warning about its settings.
      warn: (fields) => void ('sequence' in fields && reported.push(fields)),
      error: () => undefined,
    };
    await using bus = await secondOf(context, { observer: { log } });
    await using live = await bus.subscribe(queue);
    await context.opened.inject(queue, bytes('{"not":"one"}'));
    await publishNumbers(bus, 1);
    assert.deepEqual(numbersOf(await take(live, 1)), [0]);
    assert.equal(reported.length, 1);
  },
};

export const readCases: BusCases = {
  async 'a replay returns the existing messages and then stops'(bus) {
    await publishNumbers(bus, 700);
    assert.deepEqual(await numbersIn(bus, queue), upTo(700));
    assert.deepEqual(await numbersIn(bus, 'gbe.nothing.here'), []);
    assert.deepEqual(await numbersIn(bus, 'gbe.nothing.>'), []);
  },

  async 'a replay starts at a sequence or a time'(bus) {
    const published = await publishNumbers(bus, 4);
    const time = await laterThan(bus, queue);
    await bus.publish({ subject: queue, payload: { n: 4 } });
    const from = { sequence: published[3]?.sequence ?? '' };
    assert.deepEqual(await numbersIn(bus, queue, { from }), [3, 4]);
    assert.deepEqual(await numbersIn(bus, queue, { from: { time } }), [4]);
    assert.deepEqual(await numbersIn(bus, queue, { from: 'end' }), []);
  },

  async 'a replay of a pattern keeps the order of each subject'(bus) {
    for (const n of upTo(3)) await publishNumbers(bus, 20, `gbe.notify.topic.t${n}`);
    const messages = await Array.fromAsync(bus.read('gbe.notify.topic.*'));
    assert.equal(messages.length, 60);
    for (const n of upTo(3)) {
      const ofOne = messages.filter(({ subject }) => subject === `gbe.notify.topic.t${n}`);
      assert.deepEqual(numbersOf(ofOne), upTo(20));
    }
  },

  async 'a replay can be stopped early'(bus) {
    await publishNumbers(bus, 50);
    const seen: number[] = [];
    for await (const message of bus.read(queue)) {
      seen.push(...numbersOf([message]));
      if (seen.length === 5) break;
    }
    assert.deepEqual(seen, upTo(5));
  },

  async 'reads stored messages raw, even malformed ones'(bus, { opened }) {
    const odd = Uint8Array.from([0, 255, 1, 254]);
    await opened.inject(queue, odd);
    await publishNumbers(bus, 1);
    const [first, second] = await Array.fromAsync(bus.readStored(queue));
    if (first?.data.length === odd.length) assert.deepEqual(new Uint8Array(first.data), odd);
    assert.match(Buffer.from(second?.data ?? []).toString(), /"n":0/);
    assert.equal(second?.subject, queue);
  },

  async 'rejects an invalid start'(bus) {
    const wrong = { from: { sequence: 'x' } };
    await rejectsWith(() => bus.subscribe(queue, wrong), 'BUS_INVALID');
    await rejectsWith(() => bus.subscribe('gbe.>', { from: { sequence: '1' } }), 'BUS_INVALID');
    await rejectsWith(() => bus.subscribe('gbe.a*'), 'NAME_INVALID');
    await rejectsWith(() => numbersIn(bus, queue, { from: 'then' as never }), 'BUS_INVALID');
  },
};

export const positionCases: BusCases = {
  async 'a reader of a pattern resumes after a given message'(bus) {
    const subjects = ['gbe.notify.topic.a', 'gbe.notify.topic.b'];
    await bus.publishMany(
      upTo(20).map((n) => ({ subject: subjects[n % 2] as string, payload: { n } })),
    );
    const all = await Array.fromAsync(bus.read('gbe.notify.>'));
    const position = all[7]?.position ?? '';
    const rest = await Array.fromAsync(bus.read('gbe.notify.>', { from: { position } }));
    assert.deepEqual(numbersOf(rest), numbersOf(all.slice(8)));
    await using live = await bus.subscribe('gbe.notify.>', { from: { position } });
    assert.deepEqual(numbersOf(await take(live, 12)), numbersOf(all.slice(8)));
  },
};
