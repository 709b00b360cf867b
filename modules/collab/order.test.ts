// Two who write at once: the chat's own order decides, whatever runs when, and every replay says the same.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { collabRig, says, tenant, type CollabRig } from './collab-rig.test.ts';
import { messagePosted, tagsAnswered, task, taskStatuses } from './index.ts';

/** The last status that somebody asked for, in the order of the chat. */
async function asked(rig: CollabRig): Promise<string> {
  const contents = (await rig.events()).flatMap((event) =>
    messagePosted.is(event) && event.payload.authorId !== 'bot' ? [event.payload.content] : [],
  );
  return contents.at(-1)?.replace('#status ', '') ?? '';
}

async function status(rig: CollabRig): Promise<string> {
  return (await rig.platform.load(task, { tenant, id: 'c-1' })).state.status;
}

test('two messages at once end in the status of the later one, on every replay', async () => {
  await using rig = await collabRig();
  await Promise.all([
    rig.send('c-1', says('ada', '#status In Progress')),
    rig.send('c-1', says('bob', '#status Done')),
  ]);
  await rig.settle();
  assert.equal(await status(rig), await asked(rig));
  const before = await rig.events();
  await rig.replay();
  assert.deepEqual(await rig.events(), before);
});

test('whatever runs when, and twice, the status is that of the last message', async () => {
  const wish = fc.record({
    author: fc.constantFrom('ada', 'bob'),
    status: fc.constantFrom(...taskStatuses.task),
    /** Steps of reactors before the next message. */
    steps: fc.nat(12),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(wish, { minLength: 2, maxLength: 5 }),
      fc.array(fc.nat(1_000), { minLength: 50, maxLength: 50 }),
      async (wishes, dice) => {
        await using rig = await collabRig();
        let thrown = 0;
        const pick = (count: number): number =>
          count === 0 ? 0 : (dice[thrown++ % dice.length] ?? 0) % count;
        for (const { author, status: wanted, steps } of wishes) {
          await rig.send('c-1', says(author, `#status ${wanted}`));
          for (let step = 0; step < steps; step += 1) await rig.step(pick);
        }
        // What stays of the dice could repeat one event for ever: to the end without them.
        for (let step = 0; step < 30; step += 1) await rig.step(pick);
        await rig.settle();
        assert.equal(await status(rig), wishes.at(-1)?.status);
        const answers = (await rig.events()).filter((event) => tagsAnswered.is(event));
        assert.equal(answers.length, wishes.length);
      },
    ),
    { numRuns: 6 },
  );
});
