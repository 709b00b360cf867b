// A group whose stored record is damaged: other groups and publishers are not affected, it stays in the list, and
// its next consumer repairs it without losing or repeating a message.

import assert from 'node:assert/strict';
import { eventually } from '../../assertions.ts';
import {
  ackAll,
  fetchSome,
  publishNumbers,
  queue,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';

const later = 'gbe.tasks.email-send.progress';
const all = { ...workers, subject: 'gbe.tasks.>' };

export const damagedGroupCases: BusCases = {
  async 'a damaged group stops no publisher, no other group and no list'(bus, { opened }) {
    if (opened.damageGroup === undefined) return;
    await bus.group({ ...all, group: 'damaged' });
    const other = await bus.group(all);
    await publishNumbers(bus, 2);
    await opened.damageGroup('damaged');
    await publishNumbers(bus, 2, later);
    const found = await fetchSome(other, 4);
    assert.equal(found.length, 4);
    await ackAll(found);
    const names = (await bus.groups()).map(({ name }) => name);
    assert.deepEqual(names.toSorted(), ['damaged', workers.group]);
    assert.equal((await bus.streams('gbe.tasks.>')).length, 2);
  },

  async 'a consumer of a damaged group continues, also with streams created since'(
    bus,
    { opened },
  ) {
    if (opened.damageGroup === undefined) return;
    await publishNumbers(bus, 2);
    const group = await bus.group(all);
    await ackAll(await fetchSome(group, 2));
    await opened.damageGroup(workers.group);
    await publishNumbers(bus, 2, later);
    const handled: string[] = [];
    const consumer = await bus.consume(all, async ({ subject, payload }) => {
      handled.push(`${subject} ${JSON.stringify(payload)}`);
    });
    await eventually('the new messages are handled', () => handled.length >= 2);
    assert.deepEqual(
      handled,
      upTo(2).map((n) => `${later} {"n":${n}}`),
    );
    const [info] = await bus.groups();
    assert.equal(info?.subject, all.subject);
    await consumer.stop();
  },

  async 'a running consumer of a group that is damaged continues'(bus, { opened }) {
    if (opened.damageGroup === undefined) return;
    const handled: unknown[] = [];
    const consumer = await bus.consume(all, async ({ payload }) => {
      handled.push(payload);
    });
    await publishNumbers(bus, 1);
    await eventually('the first message is handled', () => handled.length === 1);
    await opened.damageGroup(workers.group);
    await publishNumbers(bus, 2, later);
    await publishNumbers(bus, 1, queue);
    await eventually('the others are handled', () => handled.length === 4);
    await consumer.stop();
  },
};
