// Patterns: durable groups over many subjects, including subjects created later.

import assert from 'node:assert/strict';
import type { Bus } from '../../../bus/bus.ts';
import {
  ackAll,
  fetchSome,
  longLeaseMs,
  nothingIn,
  numbersOf,
  publishNumbers,
  upTo,
  type BusCases,
} from './fixture.ts';

const subjects = [
  'gbe.tasks.email-send.terminal',
  'gbe.tasks.report-gen.terminal',
  'gbe.tasks.report-gen.queue',
  'gbe.tasks._control.sweep',
  'gbe.notify.customer.c1.alert',
  'gbe.notify.topic.server-alerts',
  'other.tasks.x.terminal',
];

async function publishToAll(bus: Bus): Promise<void> {
  await bus.publishMany(subjects.map((subject) => ({ subject, payload: { subject } })));
}

async function taken(bus: Bus, subject: string, count: number): Promise<string[]> {
  const group = await bus.group({ group: 'monitors', subject, leaseMs: longLeaseMs });
  const deliveries = await fetchSome(group, count);
  await ackAll(deliveries);
  await nothingIn(group);
  return deliveries.map((each) => each.subject).toSorted();
}

export const patternCases: BusCases = {
  async '* matches one token'(bus) {
    await publishToAll(bus);
    assert.deepEqual(await taken(bus, 'gbe.tasks.*.terminal', 2), [
      'gbe.tasks.email-send.terminal',
      'gbe.tasks.report-gen.terminal',
    ]);
  },

  async '> matches all following tokens'(bus) {
    await publishToAll(bus);
    const expected = subjects.filter((each) => each.startsWith('gbe.tasks.')).toSorted();
    assert.deepEqual(await taken(bus, 'gbe.tasks.>', expected.length), expected);
  },

  async 'the pattern > matches every domain'(bus) {
    await publishToAll(bus);
    assert.deepEqual(await taken(bus, '>', subjects.length), subjects.toSorted());
  },

  async '* matches the first and a middle token'(bus) {
    await publishToAll(bus);
    assert.deepEqual(await taken(bus, '*.*.*.terminal', 3), [
      'gbe.tasks.email-send.terminal',
      'gbe.tasks.report-gen.terminal',
      'other.tasks.x.terminal',
    ]);
  },

  async 'delivers subjects created later from their start'(bus) {
    const definition = { group: 'monitors', subject: 'gbe.tasks.*.terminal', leaseMs: longLeaseMs };
    const group = await bus.group({ ...definition, from: 'end' });
    for (const type of ['a', 'b', 'c']) {
      const waiting = group.fetch({ limit: 5, waitMs: 60_000 });
      await bus.publish({ subject: `gbe.tasks.${type}.terminal`, payload: { type } });
      const [delivery] = await waiting;
      assert.deepEqual(delivery?.payload, { type });
      await delivery?.ack();
    }
  },

  async 'keeps the order of each subject'(bus) {
    const names = upTo(10).map((n) => `gbe.notify.topic.t${n}`);
    await bus.publishMany(
      upTo(200).map((n) => ({ subject: names[n % 10] as string, payload: { n } })),
    );
    const group = await bus.group({ group: 'all', subject: 'gbe.notify.topic.*' });
    const deliveries = await fetchSome(group, 200);
    for (const [at, name] of names.entries()) {
      const ofOne = deliveries.filter(({ subject }) => subject === name);
      assert.deepEqual(
        numbersOf(ofOne),
        upTo(200).filter((n) => n % 10 === at),
      );
    }
  },

  async 'members of a group over a pattern share its messages'(bus) {
    await Promise.all(upTo(5).map((n) => publishNumbers(bus, 8, `gbe.notify.topic.t${n}`)));
    const definition = { group: 'all', subject: 'gbe.notify.>', leaseMs: longLeaseMs };
    const [one, other] = [await bus.group(definition), await bus.group(definition)];
    const shares = [await fetchSome(one, 20), await fetchSome(other, 20)].flat();
    const keys = shares.map(({ subject, sequence }) => `${subject} ${sequence}`);
    assert.equal(new Set(keys).size, 40);
    await nothingIn(one);
  },

  async 'a group over a subject and one over a pattern each get the message'(bus) {
    await publishToAll(bus);
    assert.equal((await taken(bus, 'gbe.notify.>', 2)).length, 2);
    const exact = await bus.group({ group: 'exact', subject: 'gbe.notify.customer.c1.alert' });
    await ackAll(await fetchSome(exact, 1));
  },

  async 'only a pattern that names dead letters matches them'(bus) {
    await publishToAll(bus);
    const definition = { group: 'all', subject: '>', leaseMs: longLeaseMs };
    const group = await bus.group(definition);
    for (const delivery of await fetchSome(group, subjects.length)) await delivery.term('no');
    await nothingIn(group);
    assert.equal((await bus.deadLetters('all')).length, subjects.length);
    const letters = await bus.group({ ...definition, group: 'of-letters', subject: '_dead.*' });
    assert.equal((await fetchSome(letters, subjects.length)).length, subjects.length);
  },
};
