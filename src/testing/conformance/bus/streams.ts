// Administration of streams and groups: inspection, trimming, deletion and moving.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  ackAll,
  fetchOne,
  fetchSome,
  longLeaseMs,
  nothingIn,
  numbersOf,
  publishNumbers,
  queue,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';
import { compareSequences } from '../../../bus/sequence.ts';

const { group: name } = workers;

export const infoCases: BusCases = {
  async 'describes a stream by its length, first and last sequence and the progress of each group'(
    bus,
  ) {
    const published = await publishNumbers(bus, 10);
    const group = await bus.group(workers);
    await bus.group({ group: 'archiver', subject: 'gbe.tasks.>' });
    await bus.group({ group: 'elsewhere', subject: 'gbe.notify.>' });
    const leased = await fetchSome(group, 4);
    await ackAll(leased.slice(0, 1));
    const info = await bus.stream(queue);
    assert.equal(info?.subject, queue);
    assert.equal(info.length, 10);
    assert.equal(info.firstSequence, published[0]?.sequence);
    assert.equal(info.lastSequence, published[9]?.sequence);
    assert.ok((info.firstStoredAt?.getTime() ?? 0) <= (info.lastStoredAt?.getTime() ?? -1));
    assert.deepEqual(
      info.groups.toSorted((a, b) => a.name.localeCompare(b.name)),
      [
        { name: 'archiver', lag: 10, pending: 0 },
        { name, lag: 6, pending: 3 },
      ],
    );
  },

  async 'a subject without messages has no stream'(bus) {
    assert.equal(await bus.stream(queue), undefined);
    await rejectsWith(() => bus.stream('gbe.*'), 'NAME_INVALID');
  },

  async 'lists streams by pattern, page by page, without system streams'(bus) {
    const subjects = upTo(7).map((n) => `gbe.notify.topic.t${n}`);
    for (const subject of [...subjects, queue]) await publishNumbers(bus, 1, subject);
    const group = await bus.group(workers);
    await (await fetchOne(group)).term('no');
    const seen: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await bus.streams('gbe.notify.>', { after, limit: 3 });
      seen.push(...page.map(({ subject }) => subject));
      after = page.at(-1)?.subject;
      if (page.length < 3) break;
    }
    assert.deepEqual(seen, subjects);
    const all = await bus.streams('>');
    assert.deepEqual(
      all.map(({ subject }) => subject),
      [...subjects, queue],
    );
    const dead = await bus.streams('_dead.>');
    assert.deepEqual(
      dead.map(({ subject }) => subject),
      [`_dead.${name}`],
    );
  },

  async 'describes a group by its subject, settings and backlog'(bus) {
    await publishNumbers(bus, 5);
    const group = await bus.group({ ...workers, maxAckPending: 7 });
    await fetchSome(group, 2);
    assert.deepEqual(await bus.groups(), [
      { name, subject: queue, leaseMs: longLeaseMs, maxAckPending: 7, lag: 3, pending: 2 },
    ]);
  },
};

export const trimCases: BusCases = {
  async 'trims the oldest messages by length'(bus) {
    await publishNumbers(bus, 10);
    assert.deepEqual(await bus.trim(queue, { lengthMax: 4 }), { removed: 6, heldBack: 0 });
    assert.deepEqual(numbersOf(await Array.fromAsync(bus.read(queue))), [6, 7, 8, 9]);
    assert.equal((await bus.stream(queue))?.length, 4);
    assert.deepEqual(await bus.trim(queue, { lengthMax: 4 }), { removed: 0, heldBack: 0 });
  },

  async 'trims the oldest messages by sequence'(bus) {
    const published = await publishNumbers(bus, 6);
    const beforeSequence = published[4]?.sequence ?? '';
    assert.deepEqual(await bus.trim(queue, { beforeSequence }), { removed: 4, heldBack: 0 });
    assert.deepEqual(numbersOf(await Array.fromAsync(bus.read(queue))), [4, 5]);
  },

  async 'trims the oldest messages by age'(bus) {
    await publishNumbers(bus, 3);
    const longAgo = new Date('2020-01-01T00:00:00.000Z');
    assert.deepEqual(await bus.trim(queue, { storedBefore: longAgo }), { removed: 0, heldBack: 0 });
    const tomorrow = new Date(Date.now() + 86_400_000);
    assert.deepEqual(await bus.trim(queue, { storedBefore: tomorrow }), {
      removed: 3,
      heldBack: 0,
    });
    assert.equal((await bus.stream(queue))?.firstSequence, undefined);
  },

  async 'keeps and counts messages that a group has not acked, delivered or not'(bus) {
    await publishNumbers(bus, 6);
    const group = await bus.group(workers);
    const leased = await fetchSome(group, 4);
    await ackAll([...leased.slice(0, 2), ...leased.slice(3)]);
    const { removed, heldBack } = await bus.trim(queue, { lengthMax: 0 });
    assert.deepEqual([removed, heldBack], [2, 4]);
    assert.deepEqual(numbersOf(await Array.fromAsync(bus.read(queue))), [2, 3, 4, 5]);
    await leased[2]?.ack();
    await ackAll(await fetchSome(group, 2));
    assert.deepEqual(await bus.trim(queue, { lengthMax: 0 }), { removed: 4, heldBack: 0 });
  },

  async 'a group over a pattern that has never fetched retains all messages'(bus) {
    await bus.group({ group: 'archiver', subject: 'gbe.tasks.>' });
    await publishNumbers(bus, 5);
    assert.deepEqual(await bus.trim(queue, { lengthMax: 0 }), { removed: 0, heldBack: 5 });
    assert.equal(await bus.deleteGroup('archiver'), true);
    assert.deepEqual(await bus.trim(queue, { lengthMax: 0 }), { removed: 5, heldBack: 0 });
  },

  async 'a forced trim removes unacked messages, and the group continues after them'(bus) {
    await publishNumbers(bus, 5);
    const group = await bus.group(workers);
    await fetchSome(group, 2);
    const order = { lengthMax: 1, evenUnacked: true };
    assert.equal((await bus.trim(queue, order)).removed, 4);
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [4]);
  },

  async 'rejects an empty or invalid trim'(bus) {
    for (const order of [
      {},
      { lengthMax: -1 },
      { lengthMax: 1.5 },
      { storedBefore: new Date(Number.NaN) },
      { beforeSequence: 'x' },
    ]) {
      await rejectsWith(() => bus.trim(queue, order), 'BUS_INVALID');
    }
    assert.deepEqual(await bus.trim(queue, { lengthMax: 0 }), { removed: 0, heldBack: 0 });
  },
};

export const bytesCases: BusCases = {
  async 'trims the oldest messages by bytes'(bus) {
    const text = 'x'.repeat(1_000);
    await bus.publishMany(upTo(10).map((n) => ({ subject: queue, payload: { n, text } })));
    const before = (await bus.stream(queue))?.bytes ?? 0;
    assert.ok(before > 10_000, `${before} bytes`);
    await bus.trim(queue, { bytesMax: Math.floor(before / 2) });
    const info = await bus.stream(queue);
    assert.ok((info?.bytes ?? before) <= before / 2);
    assert.ok((info?.length ?? 0) >= 3 && (info?.length ?? 10) <= 5);
    assert.equal(numbersOf(await Array.fromAsync(bus.read(queue))).at(-1), 9);
  },
};

export const adminCases: BusCases = {
  async 'deletes a stream with unacked messages only if forced'(bus) {
    const [, last] = await publishNumbers(bus, 2);
    const group = await bus.group(workers);
    const error = await rejectsWith(() => bus.deleteStream(queue), 'BUS_STREAM_HELD');
    assert.deepEqual(error.details['groups'], [name]);
    await fetchOne(group);
    assert.equal(await bus.deleteStream(queue, { evenUnacked: true }), true);
    assert.equal(await bus.deleteStream(queue, { evenUnacked: true }), false);
    assert.deepEqual(await Array.fromAsync(bus.read(queue)), []);
    await nothingIn(group);
    // The group still exists, and sequences continue.
    const again = await bus.publish({ subject: queue, payload: { n: 7 } });
    assert.ok(compareSequences(again.sequence, last?.sequence ?? '0') > 0);
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [7]);
  },

  async 'moves a group back to the start'(bus) {
    await publishNumbers(bus, 4);
    const group = await bus.group(workers);
    const [first] = await fetchSome(group, 1);
    await ackAll(await fetchSome(group, 3));
    await bus.seek(name, 'start');
    assert.deepEqual(numbersOf(await fetchSome(group, 4)), upTo(4));
    void first;
  },

  async 'moves a group to a sequence or to the end'(bus) {
    const published = await publishNumbers(bus, 5);
    const group = await bus.group(workers);
    await fetchSome(group, 1);
    await bus.seek(name, { sequence: published[3]?.sequence ?? '' });
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [3, 4]);
    await bus.seek(name, 'end');
    await nothingIn(group);
    await bus.publish({ subject: queue, payload: { n: 5 } });
    assert.deepEqual(numbersOf(await fetchSome(group, 1)), [5]);
  },

  async 'rejects moving an unknown group'(bus) {
    await rejectsWith(() => bus.seek('unknown', 'start'), 'BUS_GROUP_UNKNOWN');
    assert.equal(await bus.deleteGroup('unknown'), false);
    const group = await bus.group(workers);
    assert.equal(await bus.deleteGroup(name), true);
    await rejectsWith(() => group.fetch({ waitMs: 0 }), 'BUS_GROUP_UNKNOWN');
    assert.deepEqual(await bus.groups(), []);
  },

  async 'a recreated group starts anew'(bus) {
    await publishNumbers(bus, 3);
    await ackAll(await fetchSome(await bus.group(workers), 3));
    await bus.deleteGroup(name);
    const group = await bus.group(workers);
    assert.deepEqual(numbersOf(await fetchSome(group, 3)), upTo(3));
  },
};

export const pendingCases: BusCases = {
  async 'lists pending messages with their delivery counts, oldest first'(bus) {
    const published = await publishNumbers(bus, 4);
    const group = await bus.group(workers);
    const [first, second, third] = await fetchSome(group, 3);
    await second?.ack();
    await third?.nack({ delayMs: 500_000 });
    const pending = await bus.pending(name);
    assert.deepEqual(
      pending.map(({ subject, sequence, deliveryCount }) => [subject, sequence, deliveryCount]),
      [
        [queue, published[0]?.sequence, 1],
        [queue, published[2]?.sequence, 1],
      ],
    );
    for (const { availableAt } of pending) assert.ok(availableAt.getTime() > Date.now());
    assert.equal((await bus.pending(name, 1)).length, 1);
    await rejectsWith(() => bus.pending('unknown'), 'BUS_GROUP_UNKNOWN');
    await first?.ack();
  },
};
