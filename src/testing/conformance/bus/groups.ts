// Groups: delivery, leases and settlement.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import {
  ackAll,
  fetchOne,
  fetchSome,
  longLeaseMs,
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
import { systemClock } from '../../../foundation/clock.ts';

export const groupCases: BusCases = {
  async 'members of a group share its messages, each delivered to one member'(bus) {
    await publishNumbers(bus, 60);
    const members = await Promise.all(upTo(3).map(() => bus.group(workers)));
    const shares = await Promise.all(members.map((member) => fetchSome(member, 20)));
    const all = shares.flatMap(numbersOf).toSorted((a, b) => a - b);
    assert.deepEqual(all, upTo(60));
    for (const member of members) await nothingIn(member);
  },

  async 'groups are independent: each gets all messages'(bus) {
    await publishNumbers(bus, 10);
    for (const name of ['monitors', 'archiver']) {
      const group = await bus.group({ ...workers, group: name });
      const deliveries = await fetchSome(group, 10);
      assert.deepEqual(numbersOf(deliveries), upTo(10));
      await ackAll(deliveries);
    }
  },

  async 'a group created before its subject gets all later messages'(bus) {
    const group = await bus.group(workers);
    await nothingIn(group);
    await publishNumbers(bus, 5);
    assert.deepEqual(numbersOf(await fetchSome(group, 5)), upTo(5));
  },

  async 'a publish wakes a waiting fetch'(bus) {
    const group = await bus.group(workers);
    const waiting = group.fetch({ limit: 10, waitMs: 60_000 });
    await publishNumbers(bus, 1);
    assert.deepEqual(numbersOf(await waiting), [0]);
  },

  async 'a fetch is limited in bytes'(bus) {
    const text = 'x'.repeat(900_000);
    const large = upTo(24).map((n) => ({ subject: queue, payload: { n, text } }));
    for (const message of large) await bus.publish(message);
    const group = await bus.group(workers);
    const first = await group.fetch({ limit: 100, waitMs: 0 });
    assert.ok(first.length > 0 && first.length < 18, `${first.length} messages in one fetch`);
    const all = [...first, ...(await fetchSome(group, large.length - first.length))];
    assert.deepEqual(numbersOf(all), upTo(24));
    await ackAll(all);
    assert.deepEqual(numbersOf(await Array.fromAsync(bus.read(queue))), upTo(24));
  },

  async 'a fetch without messages returns an empty list after waitMs'(bus) {
    const group = await bus.group(workers);
    assert.deepEqual(await group.fetch({ waitMs: 30 }), []);
  },

  async 'an aborted signal cancels a fetch without losing messages'(bus) {
    const group = await bus.group(workers);
    const stopping = new AbortController();
    const waiting = group.fetch({ waitMs: 60_000, signal: stopping.signal });
    stopping.abort();
    await rejectsWith(() => waiting, 'ABORTED');
    await publishNumbers(bus, 3);
    assert.deepEqual(numbersOf(await fetchSome(group, 3)), upTo(3));
  },

  async 'does not redeliver an acked message, even to a new member'(bus) {
    await publishNumbers(bus, 5);
    await ackAll(await fetchSome(await bus.group(workers), 5));
    await publishNumbers(bus, 1);
    const group = await bus.group({ ...workers, leaseMs: shortLeaseMs });
    const next = await fetchOne(group);
    assert.equal(next.deliveryCount, 1);
    await ackAll([next]);
    await nothingIn(group);
  },

  async 'acks many messages in one call'(bus) {
    await publishNumbers(bus, 200);
    const group = await bus.group(workers);
    await group.ack(await fetchSome(group, 200));
    const [info] = await bus.groups();
    assert.deepEqual([info?.lag, info?.pending], [0, 0]);
  },

  async 'the first settlement of a message counts'(bus) {
    await publishNumbers(bus, 1);
    const group = await bus.group(workers);
    const delivery = await fetchOne(group);
    assert.equal(await delivery.ack(), 'settled');
    assert.equal(await delivery.ack(), 'stale');
    assert.equal(await delivery.nack(), 'stale');
    assert.equal(await delivery.term('no'), 'stale');
    assert.equal(await delivery.inProgress(), 'stale');
    await nothingIn(group);
    assert.deepEqual(await bus.deadLetters(workers.group), []);
  },

  async 'redelivers a nacked message at once and counts the delivery'(bus) {
    await publishNumbers(bus, 1);
    const group = await bus.group(workers);
    for (const count of [1, 2, 3]) {
      const delivery = await fetchOne(group);
      assert.equal(delivery.deliveryCount, count);
      assert.equal(await delivery.nack(), 'settled');
    }
  },

  async 'redelivers a message nacked with a delay after the delay, and others before'(bus) {
    await publishNumbers(bus, 2);
    const group = await bus.group(workers);
    const first = await fetchOne(group);
    const nackedMs = systemClock.now();
    await first.nack({ delayMs: 400 });
    const other = await fetchOne(group);
    assert.deepEqual(numbersOf([other]), [1]);
    const again = await fetchOne(group);
    assert.deepEqual([numbersOf([again]), again.deliveryCount], [[0], 2]);
    // The clock of the broker may round differently.
    assert.ok(systemClock.now() - nackedMs >= 350);
  },

  async 'an expired lease passes the message to another member'(bus) {
    await publishNumbers(bus, 1);
    const definition = { ...workers, leaseMs: shortLeaseMs };
    const [dying, other] = [await bus.group(definition), await bus.group(definition)];
    await fetchOne(dying);
    const again = await fetchOne(other);
    assert.equal(again.deliveryCount, 2);
    await again.ack();
  },

  async 'no other member gets a leased message'(bus) {
    await publishNumbers(bus, 3);
    const group = await bus.group(workers);
    const leased = await fetchSome(group, 2);
    const other = await bus.group(workers);
    assert.deepEqual(numbersOf(await fetchSome(other, 1)), [2]);
    await nothingIn(other);
    await ackAll(leased);
  },

  async 'a member that extends its lease keeps the message'(bus) {
    await underSomeLease(bus, async (definition) => {
      const { leaseMs } = definition;
      const [busy, other] = [await bus.group(definition), await bus.group(definition)];
      const delivery = await fetchOne(busy);
      const untilMs = systemClock.now() + 1.4 * leaseMs;
      while (systemClock.now() < untilMs) {
        if ((await delivery.inProgress()) !== 'settled') return false;
        if ((await other.fetch({ waitMs: leaseMs / 15 })).length > 0) return false;
      }
      return (await delivery.ack()) === 'settled';
    });
  },

  async 'limits the leased messages of a group over all its members'(bus) {
    await publishNumbers(bus, 5);
    const definition = { ...workers, maxAckPending: 2 };
    const [one, other] = [await bus.group(definition), await bus.group(definition)];
    const leased = await fetchSome(one, 2);
    assert.deepEqual(numbersOf(leased), [0, 1]);
    await nothingIn(other);
    await leased[0]?.ack();
    assert.deepEqual(numbersOf(await other.fetch({ limit: 5 })), [2]);
    await nothingIn(one);
  },

  async 'a new group starts at the end'(bus) {
    await publishNumbers(bus, 3);
    const group = await bus.group({ ...workers, from: 'end' });
    await nothingIn(group);
    await bus.publish({ subject: queue, payload: { n: 3 } });
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [3]);
  },

  async 'a new group starts at a sequence'(bus) {
    const published = await publishNumbers(bus, 5);
    const from = { sequence: published[3]?.sequence ?? '' };
    const group = await bus.group({ ...workers, from });
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [3, 4]);
    await nothingIn(group);
  },

  async 'a new group starts at a time'(bus) {
    await publishNumbers(bus, 2);
    const before = await bus.stream(queue);
    const lastMs = before?.lastStoredAt?.getTime() ?? 0;
    // Wait for the next millisecond of the broker's clock.
    await eventually('the clock moved', async () => {
      await bus.publish({ subject: 'gbe.events.system.health', payload: 1 });
      const tick = await bus.stream('gbe.events.system.health');
      return (tick?.lastStoredAt?.getTime() ?? 0) > lastMs + 1;
    });
    await bus.publish({ subject: queue, payload: { n: 2 } });
    const group = await bus.group({ ...workers, from: { time: new Date(lastMs + 1) } });
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [2]);
    await nothingIn(group);
  },

  async 'an existing group ignores the start position of a new member'(bus) {
    await publishNumbers(bus, 4);
    await ackAll(await fetchSome(await bus.group(workers), 2));
    const group = await bus.group({ ...workers, from: 'end' });
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [2, 3]);
  },

  async 'a group name belongs to one subject'(bus) {
    await bus.group(workers);
    const other = { ...workers, subject: 'gbe.tasks.report-gen.queue' };
    await rejectsWith(() => bus.group(other), 'BUS_GROUP_CONFLICT');
  },

  async 'rejects an invalid group definition'(bus) {
    for (const wrong of [
      { group: '' },
      { group: 'a.b' },
      { group: 'x'.repeat(65) },
      { leaseMs: 1 },
      { maxAckPending: 0 },
      { maxDeliveries: 0 },
      { from: { sequence: 'x' } },
      { from: { time: new Date(Number.NaN) } },
      { from: 'later' as never },
      { subject: 'gbe.>', from: { sequence: '1' } },
    ]) {
      await rejectsWith(() => bus.group({ ...workers, ...wrong }), 'BUS_INVALID');
    }
    for (const subject of ['gbe.a*', 'gbe.>.x', '']) {
      await rejectsWith(() => bus.group({ ...workers, subject }), 'NAME_INVALID');
    }
    assert.deepEqual(await bus.groups(), []);
  },
};

export const orderCases: BusCases = {
  async 'with one message at a time the order is strict, despite nacks and lost leases'(bus) {
    await publishNumbers(bus, 4);
    const strict = { ...workers, maxAckPending: 1, leaseMs: shortLeaseMs };
    const group = await bus.group(strict);
    const seen: number[] = [];
    const first = await fetchOne(group);
    seen.push(...numbersOf([first]));
    await nothingIn(group);
    await first.nack({ delayMs: 50 });
    for (let acked = 0; acked < 4;) {
      const delivery = await fetchOne(group);
      seen.push(...numbersOf([delivery]));
      // The lease of the second message expires once.
      if (numbersOf([delivery])[0] === 1 && delivery.deliveryCount === 1) continue;
      await delivery.ack();
      acked += 1;
    }
    assert.deepEqual(seen, [0, 0, 1, 1, 2, 3]);
  },

  async 'redelivered messages precede newer ones'(bus) {
    await publishNumbers(bus, 6);
    const group = await bus.group({ ...workers, leaseMs: longLeaseMs });
    const [first, second] = await fetchSome(group, 2);
    await second?.nack();
    await first?.nack();
    assert.deepEqual(numbersOf(await fetchSome(group, 4)), [0, 1, 2, 3]);
  },
};

export const fencedCases: BusCases = {
  async 'a late ack changes nothing and is reported as lost'(bus) {
    await publishNumbers(bus, 1);
    const group = await bus.group({ ...workers, leaseMs: shortLeaseMs });
    const late = await fetchOne(group);
    const current = await fetchOne(group);
    assert.equal(current.deliveryCount, 2);
    assert.equal(await late.ack(), 'stale');
    const again = await fetchOne(group);
    assert.equal(again.deliveryCount, 3);
    assert.equal(await again.ack(), 'settled');
  },

  async 'a late nack, extension or termination changes nothing and is reported as lost'(bus) {
    await publishNumbers(bus, 1);
    const group = await bus.group({ ...workers, leaseMs: shortLeaseMs });
    const late = await fetchOne(group);
    const current = await fetchOne(group);
    assert.equal(await late.inProgress(), 'stale');
    assert.equal(await late.term('late'), 'stale');
    assert.equal(await current.ack(), 'settled');
    assert.deepEqual(await bus.deadLetters(workers.group), []);
  },
};
