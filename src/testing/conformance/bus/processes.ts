// Several processes on one bus, and outages of the broker.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import type { Observer } from '../../../foundation/observer.ts';
import {
  ackAll,
  fetchSome,
  nothingIn,
  numbersOf,
  publishNumbers,
  queue,
  secondOf,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';

export const processCases: BusCases = {
  async 'a publish wakes a waiting fetch in another process'(bus, context) {
    await using second = await secondOf(context);
    const group = await second.group(workers);
    const waiting = group.fetch({ waitMs: 60_000 });
    await using live = await second.subscribe('gbe.>');
    await publishNumbers(bus, 1);
    assert.deepEqual(numbersOf(await waiting), [0]);
    for await (const message of live) {
      assert.equal(message.subject, queue);
      break;
    }
  },

  async 'only messages of the subscribed subject wake a waiting member'(bus, context) {
    await using second = await secondOf(context);
    const group = await second.group(workers);
    const waiting = group.fetch({ waitMs: 60_000 });
    const over = new AbortController();
    const busy = (async () => {
      while (!over.signal.aborted) {
        await second.publish({ subject: 'gbe.events.system.health', payload: 1 });
      }
    })();
    await publishNumbers(bus, 1);
    assert.deepEqual(numbersOf(await waiting), [0]);
    over.abort();
    await busy;
  },

  async 'readers in two processes see the same order'(bus, context) {
    await using second = await secondOf(context);
    await using here = await bus.subscribe(queue);
    await using there = await second.subscribe(queue);
    const count = 60;
    const publishing = [bus, second].map(async (each, at) => {
      for (let n = 0; n < count / 2; n += 1) {
        await each.publish({ subject: queue, payload: { n: n * 2 + at } });
      }
    });
    const [seenHere, seenThere] = await Promise.all(
      [here, there].map(async (live) => {
        const seen: string[] = [];
        for await (const { sequence, payload } of live) {
          seen.push(`${sequence} ${(payload as { readonly n: number }).n}`);
          if (seen.length === count) break;
        }
        return seen;
      }),
    );
    await Promise.all(publishing);
    assert.deepEqual(seenHere, seenThere);
    const stored = await Array.fromAsync(bus.read(queue));
    assert.deepEqual(
      seenHere,
      stored.map(({ sequence, payload }) => `${sequence} ${(payload as { readonly n: number }).n}`),
    );
  },

  async 'members of a group in two processes share its messages'(bus, context) {
    await using second = await secondOf(context);
    await publishNumbers(bus, 100);
    const shares = await Promise.all(
      [bus, second].map(async (each) => fetchSome(await each.group(workers), 50)),
    );
    const all = shares.flatMap(numbersOf).toSorted((a, b) => a - b);
    assert.deepEqual(all, upTo(100));
  },

  async 'message ids are deduplicated across processes'(bus, context) {
    await using second = await secondOf(context);
    const message = { subject: queue, id: 'once', payload: { n: 0 } };
    const [one, other] = await Promise.all([bus.publish(message), second.publish(message)]);
    assert.equal(Number(one.isDuplicate) + Number(other.isDuplicate), 1);
    assert.equal(one.sequence, other.sequence);
  },

  async 'only the lease owner can ack, even after it reconnected'(bus, context) {
    await publishNumbers(bus, 3);
    {
      await using first = await secondOf(context);
      await ackAll((await fetchSome(await first.group(workers), 2)).slice(0, 1));
    }
    const group = await bus.group(workers);
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [2]);
    await nothingIn(group);
    assert.equal((await bus.groups())[0]?.pending, 2);
  },

  async 'another process replies to a request'(bus, context) {
    await using second = await secondOf(context);
    await second.consume(workers, (message) => message.reply('yes'));
    const reply = await bus.request({ subject: queue, payload: 1 }, { timeoutMs: 60_000 });
    assert.equal(reply.payload, 'yes');
  },
};

export const restartCases: BusCases = {
  async 'a publish during an outage fails, and retrying the same id stores it once'(
    bus,
    { opened },
  ) {
    const message = { subject: queue, id: 'm', payload: { n: 0 } };
    await publishNumbers(bus, 1);
    const back = (await opened.outage?.()) ?? assert.fail('the fixture has no outage');
    const error = await rejectsWith(() => bus.publish(message), 'BUS_UNAVAILABLE');
    assert.equal(error.retryable, true);
    await back();
    await eventually('it is stored', async () => {
      try {
        await bus.publish(message);
        return true;
      } catch {
        return false;
      }
    });
    const stored = await Array.fromAsync(bus.read(queue));
    assert.equal(stored.filter(({ id }) => id === 'm').length, 1);
    assert.equal(stored.length, 2);
  },

  async 'a consumer resumes after an outage and logs the loss and the recovery once each'(
    _bus,
    context,
  ) {
    const logged: string[] = [];
    const append = (_fields: object, message: string): void => void logged.push(message);
    const log: Observer['log'] = { debug: append, info: append, warn: append, error: append };
    await using bus = await secondOf(context, { observer: { log } });
    const seen: number[] = [];
    const gate = Promise.withResolvers<void>();
    await bus.consume(workers, async (message) => {
      seen.push(...numbersOf([message]));
      if (seen.length === 1) await gate.promise;
    });
    await publishNumbers(bus, 3);
    await eventually('the first handler started', async () => seen.length === 1);
    const back = (await context.opened.outage?.()) ?? assert.fail('the fixture has no outage');
    gate.resolve();
    await eventually('the change is logged', async () =>
      logged.includes('bus consumer lost its broker'),
    );
    await back();
    await eventually('the consumer resumed', async () => new Set(seen).size === 3);
    await eventually('the change is logged', async () => logged.includes('bus consumer resumed'));
    for (const message of ['bus consumer lost its broker', 'bus consumer resumed']) {
      assert.equal(logged.filter((each) => each === message).length, 1, message);
    }
  },

  async 'stored messages and acks survive an outage'(bus, { opened }) {
    await publishNumbers(bus, 4);
    await ackAll(await fetchSome(await bus.group(workers), 2));
    const back = (await opened.outage?.()) ?? assert.fail('the fixture has no outage');
    await back();
    const group = await bus.group(workers);
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [2, 3]);
  },
};

export const wholeBatchCases: BusCases = {
  async 'an outage leaves a batch stored completely or not at all'(bus, { opened }) {
    const publishing = publishNumbers(bus, 500).then(
      () => 500,
      () => undefined,
    );
    const back = (await opened.outage?.()) ?? assert.fail('the fixture has no outage');
    const stored = await publishing;
    await back();
    const length = (await Array.fromAsync(bus.read(queue))).length;
    // A publish that was reported as failed may be stored, but never partially.
    assert.ok(
      stored === undefined ? length === 0 || length === 500 : length === stored,
      `${length}`,
    );
  },
};
