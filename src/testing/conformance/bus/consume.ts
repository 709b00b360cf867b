// Consumers: outcomes of handlers, concurrency and shutdown.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { RetryAfter, Terminal } from '../../../foundation/handler-outcome.ts';
import type { Delivery } from '../../../bus/bus-message.ts';
import {
  bytes,
  fetchSome,
  nothingIn,
  numbersOf,
  publishNumbers,
  queue,
  shortLeaseMs,
  underSomeLease,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';

const { group: name } = workers;
const now = (): number => 0;

export const consumeCases: BusCases = {
  async 'a handler gets all messages in order, and resolving acks the message'(bus) {
    await publishNumbers(bus, 30);
    const seen: number[] = [];
    await bus.consume(workers, (message) => {
      seen.push(...numbersOf([message]));
    });
    await eventually('all messages arrived', async () => seen.length === 30);
    assert.deepEqual(seen, upTo(30));
    await eventually('all are acked', async () => (await bus.groups())[0]?.pending === 0);
    await publishNumbers(bus, 1);
    await eventually('the next message arrived', async () => seen.length === 31);
  },

  async 'redelivers a message whose handler throws, then dead-letters it'(bus) {
    await publishNumbers(bus, 1);
    const counts: number[] = [];
    const definition = { ...workers, maxDeliveries: 3 };
    await bus.consume(
      definition,
      ({ deliveryCount }) => {
        counts.push(deliveryCount);
        throw new Error(`no ${deliveryCount}`);
      },
      { backoffMs: now },
    );
    await eventually('it is dead', async () => (await bus.deadLetters(name)).length === 1);
    assert.deepEqual(counts, [1, 2, 3]);
    const [letter] = await bus.deadLetters(name);
    assert.deepEqual([letter?.reason, letter?.cause], ['no 3', 'max-deliveries']);
  },

  async 'a thrown Terminal or RetryAfter decides when the message is redelivered'(bus) {
    await publishNumbers(bus, 2);
    const counts = new Map<number, number>();
    let firstMs = 0;
    let againMs = 0;
    await bus.consume(workers, (message) => {
      const [n = 0] = numbersOf([message]);
      counts.set(n, message.deliveryCount);
      if (n === 0) throw new Terminal('never');
      if (message.deliveryCount === 1) {
        firstMs = systemClock.now();
        throw new RetryAfter(100);
      }
      againMs = systemClock.now();
    });
    await eventually('the second message was redelivered', async () => againMs > 0);
    assert.ok(againMs - firstMs >= 90);
    const [letter] = await bus.deadLetters(name);
    assert.deepEqual([letter?.reason, letter?.cause], ['never', 'terminated']);
    assert.equal(counts.get(0), 1);
  },

  async 'an explicit settlement by the handler overrides its outcome'(bus) {
    await publishNumbers(bus, 3);
    await bus.consume(workers, async (message) => {
      const [n] = numbersOf([message]);
      if (n === 0) await message.term('mine');
      if (n === 1 && message.deliveryCount === 1) await message.nack();
      if (n === 2) {
        await message.ack();
        throw new Error('after the ack');
      }
    });
    await eventually('all are settled', async () => {
      const [info] = await bus.groups();
      return info?.lag === 0 && info.pending === 0;
    });
    assert.deepEqual(
      (await bus.deadLetters(name)).map(({ reason }) => reason),
      ['mine'],
    );
  },

  async 'malformed messages do not block valid ones'(bus, { opened }) {
    await publishNumbers(bus, 1);
    for (const text of ['x', '{}', '[]']) await opened.inject(queue, bytes(text));
    await publishNumbers(bus, 1);
    let seen = 0;
    await bus.consume(workers, () => void (seen += 1));
    await eventually('both messages arrived', async () => seen === 2);
    await eventually('the others are dead', async () => (await bus.deadLetters(name)).length === 3);
  },

  async 'concurrency limits the running handlers'(bus) {
    await publishNumbers(bus, 20);
    const gate = Promise.withResolvers<void>();
    let [running, most, seen] = [0, 0, 0];
    await bus.consume(
      workers,
      async () => {
        running += 1;
        most = Math.max(most, running);
        await gate.promise;
        running -= 1;
        seen += 1;
      },
      { concurrency: 4 },
    );
    await eventually('four run', async () => running === 4);
    gate.resolve();
    await eventually('all messages arrived', async () => seen === 20);
    assert.equal(most, 4);
  },

  async 'a consumer leases no more messages than its limit and leaves the rest to others'(bus) {
    await publishNumbers(bus, 30);
    const gate = Promise.withResolvers<void>();
    await bus.consume(workers, () => gate.promise, { maxInFlight: 10 });
    await eventually('it is full', async () => (await bus.groups())[0]?.pending === 10);
    const other = await bus.group(workers);
    assert.equal((await fetchSome(other, 20)).length, 20);
    await nothingIn(other);
    gate.resolve();
  },

  async 'stopping waits for running handlers and releases the other messages'(
    bus,
    { capabilities },
  ) {
    await publishNumbers(bus, 5);
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    let done = 0;
    const consumer = await bus.consume(workers, async () => {
      begun += 1;
      await gate.promise;
      done += 1;
    });
    await eventually('one handler started', async () => begun === 1);
    let isOver = false;
    const stopped = consumer.stop().then(() => (isOver = true));
    const next = await bus.group(workers);
    const rest = await fetchSome(next, 4);
    assert.deepEqual(numbersOf(rest), [1, 2, 3, 4]);
    if (capabilities.uncountedRelease) {
      for (const { deliveryCount } of rest) assert.equal(deliveryCount, 1);
    }
    assert.equal(isOver, false);
    gate.resolve();
    await stopped;
    assert.deepEqual([begun, done], [1, 1]);
    await nothingIn(next);
  },

  async 'an aborted signal or a closed bus stops the consumer'(bus) {
    const stopping = new AbortController();
    const one = await bus.consume(workers, () => undefined, { signal: stopping.signal });
    const other = await bus.consume({ ...workers, group: 'other' }, () => undefined);
    stopping.abort();
    await one.done;
    await bus[Symbol.asyncDispose]();
    await other.done;
    await rejectsWith(() => bus.publish({ subject: queue, payload: 1 }), 'BUS_CLOSED');
    await rejectsWith(() => bus.consume(workers, () => undefined), 'BUS_CLOSED');
  },

  async 'the consumer extends the lease of a long-running handler'(bus) {
    await underSomeLease(bus, async (definition) => {
      const gate = Promise.withResolvers<void>();
      let begun = 0;
      await using consumer = await bus.consume(definition, async () => {
        begun += 1;
        await gate.promise;
      });
      await eventually('the handler started', async () => begun === 1);
      const other = await bus.group(definition);
      const taken = await other.fetch({ waitMs: 2 * definition.leaseMs });
      gate.resolve();
      await consumer.stop();
      if (taken.length > 0 || begun > 1) return false;
      await nothingIn(other);
      return true;
    });
  },

  async 'without extension the lease expires and another member gets the message'(bus) {
    await publishNumbers(bus, 1);
    const gate = Promise.withResolvers<void>();
    const definition = { ...workers, leaseMs: shortLeaseMs };
    await bus.consume(definition, () => gate.promise, {
      autoExtend: false,
      maxInFlight: 1,
    });
    await eventually('the handler started', async () => (await bus.groups())[0]?.pending === 1);
    const other = await bus.group(definition);
    const [again] = await fetchSome(other, 1);
    assert.equal(again?.deliveryCount, 2);
    await again?.ack();
    gate.resolve();
  },

  async 'consumers of a group share the messages, each once'(bus) {
    const seen: number[] = [];
    const handle = (message: Delivery): void => void seen.push(...numbersOf([message]));
    await bus.consume(workers, handle, { maxInFlight: 5 });
    await bus.consume(workers, handle, { maxInFlight: 5 });
    await publishNumbers(bus, 100);
    await eventually('all messages arrived', async () => seen.length >= 100);
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      upTo(100),
    );
  },

  async 'recreates a group that was deleted under its consumer, and skips nothing'(bus) {
    const seen: number[] = [];
    await bus.consume(workers, (message) => {
      seen.push(...numbersOf([message]));
    });
    await publishNumbers(bus, 1);
    await eventually('the message arrived', async () => seen.length === 1);
    assert.equal(await bus.deleteGroup(name), true);
    await publishNumbers(bus, 2);
    await eventually('all messages arrived', async () => new Set(seen).size === 2);
  },

  async 'rejects invalid options'(bus) {
    for (const wrong of [{ concurrency: 0 }, { maxInFlight: 0 }, { concurrency: 1.5 }]) {
      await rejectsWith(() => bus.consume(workers, () => undefined, wrong), 'BUS_INVALID');
    }
  },
};

export const lostLeaseCases: BusCases = {
  async 'aborts the handler when its message passes to another member'(bus) {
    await publishNumbers(bus, 1);
    const lost = Promise.withResolvers<unknown>();
    const definition = { ...workers, leaseMs: 300 };
    await bus.consume(definition, async (message, signal) => {
      if (message.deliveryCount > 1) return;
      signal.addEventListener('abort', () => lost.resolve(signal.reason));
      await lost.promise;
    });
    await eventually('it is out', async () => (await bus.groups())[0]?.pending === 1);
    await bus.seek(name, 'end');
    assert.ok(hasCode(await lost.promise, 'LEASE_LOST'));
  },
};
