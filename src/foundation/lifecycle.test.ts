import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { seededRandom } from '../testing/seeded-random.ts';
import { createLifecycle, runUntilStopped, withLifecycle } from './lifecycle.ts';

test('releases exactly once per acquire over 500 rounds of racing starts and stops', async () => {
  const random = seededRandom(7);
  let acquiredCount = 0;
  let acquired = 0;
  const turns = async (): Promise<void> => {
    for (let turn = random.below(3); turn > 0; turn -= 1) await new Promise(setImmediate);
  };
  await stressLifecycle({
    rounds: 500,
    create: () => {
      let mine = false;
      return createLifecycle({
        start: async () => {
          await turns();
          assert.equal(mine, false, 'acquired twice without a release');
          mine = true;
          acquiredCount += 1;
          acquired += 1;
          await turns();
        },
        stop: async () => {
          await turns();
          if (mine) acquiredCount -= 1;
          mine = false;
        },
      });
    },
    assertReleased: () => assert.equal(acquiredCount, 0),
  });
  assert.ok(acquired > 500);
});

test('a failed start releases what it acquired and can be repeated', async () => {
  let tries = 0;
  let released = 0;
  const service = createLifecycle({
    start: async () => {
      tries += 1;
      if (tries === 1) throw new Error('port taken');
    },
    stop: async () => {
      released += 1;
    },
  });
  await assert.rejects(service.start(), /port taken/);
  assert.deepEqual([service.state, released], ['stopped', 1]);
  await service.start();
  assert.equal(service.state, 'started');
});

test('concurrent starts share one acquire', async () => {
  let acquired = 0;
  await using service = createLifecycle({
    start: async () => {
      acquired += 1;
    },
    stop: async () => {},
  });
  await Promise.all([service.start(), service.start(), service.start()]);
  assert.equal(acquired, 1);
});

test('stop cancels a running start by its signal', async () => {
  const service = createLifecycle({
    start: (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cancelled')));
      }),
    stop: async () => {},
  });
  const started = service.start();
  await service.stop();
  await assert.rejects(started, /cancelled/);
  assert.equal(service.state, 'stopped');
});

test('a failing release rejects for the caller and leaves the service stopped', async () => {
  const service = createLifecycle({
    start: async () => {},
    stop: async () => {
      throw new Error('cannot close');
    },
  });
  await service.start();
  await assert.rejects(service.stop(), /cannot close/);
  assert.equal(service.state, 'stopped');
});

test('a part with a lifecycle starts and stops, and its getters stay getters', async () => {
  let running = 0;
  const loop = runUntilStopped(async (stopping) => {
    running += 1;
    await new Promise((resolve) => stopping.addEventListener('abort', resolve, { once: true }));
    running -= 1;
  });
  await using service = withLifecycle(loop, {
    get running() {
      return running;
    },
  });
  await service.start();
  assert.deepEqual([service.state, service.running], ['started', 1]);
  await service.stop();
  assert.deepEqual([service.state, service.running], ['stopped', 0]);
});
