import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRig, labelOf, until } from '../testing/support/subscriptions/rig.ts';
import { simulateProcess } from '../testing/support/subscriptions/simulated-process.ts';
import type { MemoryTransaction } from '../testing/support/subscriptions/memory/storage.ts';
import { createSubscriptionRunner, type SubscriptionRunner } from './subscription-runner.ts';
import { subscription } from './subscription.ts';

const name = 'sub:banking:killed:v1';
const leaseMs = 300;
const expected = ['a1', 'b1', 'a2', 'b2'];

/** Returns the step at which the process was killed; undefined if it has fewer steps. */
async function killedAt(step: number, batchSize: number | undefined): Promise<string | undefined> {
  const { clock, db, append } = createRig();
  const shared = db.subscriptions;
  for (const label of expected) await append(label.slice(0, 1), Number(label.slice(1)));
  const effects: string[] = [];

  const run = (storage: typeof shared, pause: (label: string) => Promise<void>) => {
    const apply = async (
      labels: readonly string[],
      transaction: () => Promise<MemoryTransaction>,
    ): Promise<void> => {
      const { onCommit } = await transaction();
      await pause('handler');
      for (const label of labels) onCommit(() => void effects.push(label));
    };
    const common = { name, lanes: 1 };
    const runner = createSubscriptionRunner(
      { ...db, subscriptions: storage },
      subscription<MemoryTransaction>(
        batchSize === undefined
          ? { ...common, handler: (event, { transaction }) => apply([labelOf(event)], transaction) }
          : {
              ...common,
              batchSize,
              batchHandler: (events, { transaction }) => apply(events.map(labelOf), transaction),
            },
      ),
      { clock, leaseMs, checkpointEvery: 1_000, checkpointMs: 100, pollMs: 50 },
    );
    void runner.start();
    return runner;
  };

  const steps: string[] = [];
  let isOver = false;
  const killed = simulateProcess(
    {
      schedule: (promise, label = '') => {
        if (isOver) return promise;
        steps.push(label);
        if (steps.length === step) killed.kill();
        return promise;
      },
    },
    shared,
    () => undefined,
  );
  const runners: SubscriptionRunner[] = [run(killed.storage, (label) => killed.pause(label))];
  await until(clock, () => steps.length >= step || effects.length === expected.length);
  isOver = true;
  const label = steps[step - 1];
  if (label === undefined) {
    await runners[0]?.stop();
    return undefined;
  }
  // One lane means one commit at a time, so every effect is below the checkpoint.
  const last = effects.at(-1);
  const { position = '' } = await shared.checkpoints.load({ subscription: name, shard: 0 });
  for (const event of await db.store.readAll().toArray()) {
    if (labelOf(event) === last) assert.ok(position >= event.position, `${label}: ${position}`);
  }
  runners.push(run(shared, async () => undefined));
  await until(clock, () => effects.length >= expected.length);
  assert.deepEqual(effects, expected, `killed at ${label}`);
  await runners[1]?.stop();
  // Do not await the killed process, because its calls never resolve.
  void runners[0]?.stop();
  return label;
}

for (const batchSize of [undefined, 3]) {
  const what = batchSize === undefined ? 'each event' : `batches of ${batchSize}`;
  test(`killed between any two steps with ${what}, effects happen once, and none is above the checkpoint`, async () => {
    const labels = new Set<string>();
    for (let step = 1; ; step += 1) {
      const label = await killedAt(step, batchSize);
      if (label === undefined) break;
      labels.add(label);
    }
    for (const label of ['begin', 'handler', 'tx.commit', 'tx.commit answered']) {
      assert.ok(labels.has(label), `never killed at ${label}: ${[...labels].join(', ')}`);
    }
  });
}
