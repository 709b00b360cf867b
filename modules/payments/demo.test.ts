import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from 'millrace/foundation';
import { createPlatform } from 'millrace/platform';
import { startHttpReceiver } from 'millrace/testing';
import { demo, sample } from './demo.ts';

test('some sample payments complete, some fail, and the webhook receives each result', async () => {
  await using receiver = await startHttpReceiver();
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [demo(receiver.url)],
  });
  await platform.start();
  const ids = await sample((request) => platform.handle(request));
  const payments = platform.documents({ bc: 'paymenthub', aggregate: 'payment' });
  const count = async (set: string): Promise<number> =>
    (await payments.bySet('core', set)).items.length;
  const deadline = AbortSignal.timeout(60_000);
  let [completed, failed] = [0, 0];
  while (completed + failed < ids.length || receiver.requests.length < ids.length) {
    await systemClock.sleep(5, deadline);
    [completed, failed] = [await count('completed'), await count('failed')];
  }
  assert.equal(receiver.requests.length, ids.length);
  assert.ok(completed > 0 && failed > 0, `${completed} completed, ${failed} failed`);
});
