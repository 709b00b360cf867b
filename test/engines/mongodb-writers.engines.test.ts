// Writers in several processes, some of them killed, and readers that must miss nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { newEvent, streamName } from '../store/rig.ts';
import { hasWritten, isDone, isLoaded, newRun } from './mongodb-run.ts';
import { onEachMongodb, onFerretdb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

/** Kills in each of two slots; a slot starts its next writer after the kill, so two writers always run. */
const killsPerSlot = 12;

onEachMongodb('writers in several processes', (target) => {
  test('eight writers in two processes lose no event, and a reader misses none', async () => {
    await using run = await newRun(target);
    const children = ['a', 'b'].map((name, index) =>
      run.start(name, { seed: run.seed + index, operations: 120 }),
    );
    for (const child of children) {
      await child.message(isDone);
      assert.equal(await child.ended, 0, child.errors());
    }
    await run.check();
  });

  test('a process can append while another process appends constantly', async () => {
    await using run = await newRun(target);
    await using busy = run.start('busy');
    await busy.message(hasWritten(10));
    for (let count = 0; count < 5; count += 1) {
      const stream = streamName(`quiet-${count % 2}`);
      await run.store.append(stream, [newEvent(`quiet-${count}`)]);
    }
    await busy.kill();
    assert.equal((await run.store.readStream(streamName('quiet-0')).toArray()).length, 3);
  });

  test(`writers that are killed ${2 * killsPerSlot} times at random moments leave no partial append`, async () => {
    await using run = await newRun(target);
    const random = seededRandom(run.seed);
    await Promise.all(
      [0, 1].map(async (slot) => {
        for (let generation = 0; generation < killsPerSlot; generation += 1) {
          const seed = run.seed + slot * 100 + generation;
          await using child = run.start(`w${slot}-${generation}`, { seed });
          // One writer in six is killed while it opens the store; half of the others immediately after an append
          // was acknowledged.
          const isOpening = random.below(6) === 0;
          if (isOpening) await child.message(isLoaded);
          else await child.message(hasWritten(1 + random.below(15)));
          if (isOpening || random.below(2) === 0) await systemClock.sleep(random.next() * 40);
          assert.equal(await child.kill(), 'SIGKILL', child.errors());
        }
      }),
    );
    await run.check();
  });

  test('writers that are paused at random moments and resumed break no rule', async () => {
    await using run = await newRun(target);
    const random = seededRandom(run.seed);
    const children = ['a', 'b', 'c'].map((name, index) =>
      run.start(name, { seed: run.seed + index, operations: 60, writers: 3 }),
    );
    let working = true;
    const disturbing = (async () => {
      while (working) {
        const { pid } = random.pick(children);
        try {
          process.kill(pid, 'SIGSTOP');
          await systemClock.sleep(random.next() * 100);
          process.kill(pid, 'SIGCONT');
        } catch {
          // The writer has already ended.
        }
        await systemClock.sleep(random.next() * 50);
      }
    })();
    for (const child of children) {
      await child.message(isDone);
      assert.equal(await child.ended, 0, child.errors());
    }
    working = false;
    await disturbing;
    await run.check();
  });
});

onFerretdb('a server that is killed', (target) => {
  test('loses no acknowledged event, and writers and readers continue', async () => {
    await using run = await newRun(target);
    const children = ['a', 'b'].map((name, index) => run.start(name, { seed: run.seed + index }));
    for (let kill = 1; kill <= 3; kill += 1) {
      await Promise.all(children.map((child) => child.message(hasWritten(kill * 10))));
      await target.server()?.kill();
      await target.server()?.start();
    }
    await Promise.all(children.map((child) => child.message(hasWritten(40))));
    for (const child of children) await child.kill();
    await run.check();
  });
});
