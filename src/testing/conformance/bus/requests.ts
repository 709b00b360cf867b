// Requests and their replies.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  fetchOne,
  fetchSome,
  nothingIn,
  numbersOf,
  publishNumbers,
  queue,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';

export const requestCases: BusCases = {
  async 'a request returns the reply of a consumer of its subject'(bus) {
    await bus.consume(workers, async (message) => {
      const [n = 0] = numbersOf([message]);
      await message.reply({ n: n * 2 });
    });
    const request = { subject: queue, payload: { n: 21 }, correlationId: 'c-1' };
    const reply = await bus.request(request, { timeoutMs: 60_000 });
    assert.deepEqual(reply.payload, { n: 42 });
    assert.equal(reply.correlationId, 'c-1');
  },

  async 'each request gets its reply, in any order of replies'(bus) {
    await bus.consume(
      workers,
      async (message) => {
        // The first request gets its reply last.
        const [n = 0] = numbersOf([message]);
        if (n === 0) await nextOnes.promise;
        await message.reply({ n });
        if (n === 9) nextOnes.resolve();
      },
      { concurrency: 10 },
    );
    const nextOnes = Promise.withResolvers<void>();
    const replies = await Promise.all(
      upTo(10).map((n) => bus.request({ subject: queue, payload: { n } }, { timeoutMs: 60_000 })),
    );
    assert.deepEqual(numbersOf(replies), upTo(10));
  },

  async 'a request without a reply times out and is not delivered afterwards'(bus) {
    const group = await bus.group(workers);
    const request = { subject: queue, payload: { n: 0 } };
    await rejectsWith(() => bus.request(request, { timeoutMs: 50 }), 'BUS_NO_REPLY');
    await publishNumbers(bus, 2);
    const deliveries = await fetchSome(group, 2);
    assert.deepEqual(numbersOf(deliveries), [0, 1]);
    assert.ok(deliveries.every(({ replyTo }) => replyTo === undefined));
    await nothingIn(group);
  },

  async 'an aborted signal cancels a request'(bus) {
    const stopping = new AbortController();
    const request = { subject: queue, payload: 1 };
    const asking = bus.request(request, { timeoutMs: 60_000, signal: stopping.signal });
    stopping.abort();
    await rejectsWith(() => asking, 'ABORTED');
    await rejectsWith(() => bus.request(request, { timeoutMs: 0 }), 'BUS_INVALID');
  },

  async 'rejects a reply to a message that is not a request'(bus) {
    await publishNumbers(bus, 1);
    const delivery = await fetchOne(await bus.group(workers));
    await rejectsWith(() => delivery.reply(1), 'BUS_INVALID');
  },
};
