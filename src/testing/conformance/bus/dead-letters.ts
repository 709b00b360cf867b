// Dead letters: causes, listing, replay and discarding.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import {
  ackAll,
  bytes,
  fetchOne,
  fetchSome,
  nothingIn,
  numbersOf,
  publishNumbers,
  queue,
  secondOf,
  shortLeaseMs,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';
import { hasTaskId } from './publish.ts';

const { group: name } = workers;

export const deadLetterCases: BusCases = {
  async 'stores a terminated message with its reason and does not redeliver it'(bus) {
    const [published] = await publishNumbers(bus, 1);
    const group = await bus.group(workers);
    assert.equal(await (await fetchOne(group)).term('nö: no amount'), 'settled');
    await nothingIn(group);
    const [letter, ...more] = await bus.deadLetters(name);
    assert.deepEqual(more, []);
    assert.equal(letter?.group, name);
    assert.equal(letter?.cause, 'terminated');
    assert.equal(letter?.reason, 'nö: no amount');
    assert.equal(letter?.attempts, 1);
    assert.equal(letter?.origin.subject, queue);
    assert.equal(letter?.origin.sequence, published?.sequence);
    assert.match(Buffer.from(letter?.data ?? []).toString(), /"n":0/);
  },

  async 'a nack after the last allowed delivery dead-letters the message'(bus) {
    await publishNumbers(bus, 1);
    const group = await bus.group({ ...workers, maxDeliveries: 3 });
    for (const count of [1, 2, 3]) {
      const delivery = await fetchOne(group);
      assert.equal(delivery.deliveryCount, count);
      await delivery.nack({ reason: `failed ${count}` });
    }
    await nothingIn(group);
    const [letter] = await bus.deadLetters(name);
    assert.deepEqual(
      [letter?.cause, letter?.reason, letter?.attempts],
      ['max-deliveries', 'failed 3', 3],
    );
  },

  async 'dead-letters a message that repeatedly kills its member'(bus) {
    await publishNumbers(bus, 2);
    const definition = { ...workers, maxDeliveries: 2, leaseMs: shortLeaseMs };
    const group = await bus.group(definition);
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [0]);
    // The other group continues.
    const other = await fetchOne(group);
    assert.deepEqual(numbersOf([other]), [1]);
    await other.ack();
    const again = await fetchOne(group);
    assert.deepEqual([numbersOf([again]), again.deliveryCount], [[0], 2]);
    await eventually('it is among the dead letters', async () => {
      assert.deepEqual(await group.fetch({ waitMs: shortLeaseMs }), []);
      return (await bus.deadLetters(name)).length === 1;
    });
    const [letter] = await bus.deadLetters(name);
    assert.deepEqual([letter?.cause, letter?.attempts], ['max-deliveries', 2]);
  },

  async 'dead-letters a malformed envelope with its bytes, and blocks nothing'(bus, { opened }) {
    const bad = [
      bytes('not json'),
      bytes('{}'),
      bytes('null'),
      Uint8Array.from([0xff, 0xfe, 0x00]),
      bytes(''),
      bytes(JSON.stringify({ version: 2, id: 'a', subject: queue, payload: 1 })),
    ];
    for (const data of bad) await opened.inject(queue, data);
    await publishNumbers(bus, 2);
    const group = await bus.group(workers);
    const good = await fetchSome(group, 2);
    assert.deepEqual(numbersOf(good), [0, 1]);
    await ackAll(good);
    const letters = await bus.deadLetters(name);
    assert.equal(letters.length, bad.length);
    for (const { cause, reason, origin } of letters) {
      assert.equal(cause, 'malformed');
      assert.match(reason, /not a transport envelope/);
      assert.equal(origin.subject, queue);
    }
    assert.match(letters[1]?.reason ?? '', /\/id is missing/);
  },

  async 'dead-letters an envelope in the stream of another subject'(bus, { opened }) {
    await bus.publish({ subject: 'gbe.notify.topic.a', payload: 1 });
    const [stored] = await Array.fromAsync(bus.readStored('gbe.notify.topic.a'));
    await opened.inject(queue, stored?.data ?? bytes(''));
    const group = await bus.group(workers);
    assert.deepEqual(await group.fetch({ waitMs: 100 }), []);
    const [letter] = await bus.deadLetters(name);
    assert.match(letter?.reason ?? '', /another subject/);
  },

  async 'the consumer dead-letters a payload that violates the schema of its subject'(
    bus,
    context,
  ) {
    await publishNumbers(bus, 1);
    await bus.publish({ subject: queue, payload: { taskId: 't' } });
    await using strict = await secondOf(context, { payloads: { [queue]: hasTaskId } });
    const group = await strict.group(workers);
    assert.deepEqual((await fetchOne(group)).payload, { taskId: 't' });
    const [letter] = await bus.deadLetters(name);
    assert.equal(letter?.cause, 'payload-invalid');
    assert.match(letter?.reason ?? '', /taskId is missing/);
  },

  async 'lists dead letters page by page, oldest first'(bus) {
    await publishNumbers(bus, 5);
    const group = await bus.group(workers);
    for (const delivery of await fetchSome(group, 5))
      await delivery.term(`no ${numbersOf([delivery])[0]}`);
    const seen: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await bus.deadLetters(name, { after, limit: 2 });
      seen.push(...page.map(({ reason }) => reason));
      after = page.at(-1)?.sequence;
      if (page.length < 2) break;
    }
    assert.deepEqual(
      seen,
      upTo(5).map((n) => `no ${n}`),
    );
  },

  async 'a replay goes only to the failed group, with a fresh delivery count, and removes the dead letter'(
    bus,
  ) {
    await publishNumbers(bus, 2);
    const group = await bus.group(workers);
    const other = await bus.group({ ...workers, group: 'monitors' });
    await ackAll(await fetchSome(other, 2));
    for (const delivery of await fetchSome(group, 2)) await delivery.term('no');
    const [first] = await bus.deadLetters(name);
    assert.equal(await bus.replayDeadLetters(name, [first?.sequence ?? '']), 1);
    const again = await fetchOne(group);
    assert.deepEqual([again.subject, again.deliveryCount], [queue, 1]);
    assert.deepEqual(numbersOf([again]), [0]);
    await again.ack();
    await nothingIn(group);
    await nothingIn(other);
    assert.equal((await bus.deadLetters(name)).length, 1);
    assert.equal(await bus.replayDeadLetters(name, [first?.sequence ?? '']), 0);
  },

  async 'a replay that fails again is dead-lettered with all attempts and its origin'(bus) {
    const [published] = await publishNumbers(bus, 1);
    const group = await bus.group({ ...workers, maxDeliveries: 2 });
    for (const total of [2, 4]) {
      for (const _ of [1, 2]) await (await fetchOne(group)).nack({ reason: 'no' });
      const [letter] = await bus.deadLetters(name);
      assert.equal(letter?.attempts, total);
      assert.deepEqual(
        [letter?.origin.subject, letter?.origin.sequence],
        [queue, published?.sequence],
      );
      assert.equal(await bus.replayDeadLetters(name, [letter?.sequence ?? '']), 1);
    }
  },

  async 'a dead letter can be discarded'(bus) {
    await publishNumbers(bus, 2);
    const group = await bus.group(workers);
    for (const delivery of await fetchSome(group, 2)) await delivery.term('no');
    const [first] = await bus.deadLetters(name);
    assert.equal(await bus.discardDeadLetters(name, [first?.sequence ?? '']), 1);
    assert.equal(await bus.discardDeadLetters(name, [first?.sequence ?? '']), 0);
    assert.equal((await bus.deadLetters(name)).length, 1);
  },

  async 'rejects an invalid dead letter id and reports an unknown one'(bus) {
    await rejectsWith(() => bus.deadLetters('a.b'), 'BUS_INVALID');
    await rejectsWith(() => bus.replayDeadLetters(name, ['x']), 'BUS_INVALID');
    assert.deepEqual(await bus.deadLetters(name), []);
    assert.equal(await bus.replayDeadLetters(name, ['1']), 0);
    assert.equal(await bus.discardDeadLetters(name, []), 0);
  },
};
