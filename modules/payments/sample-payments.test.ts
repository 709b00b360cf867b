import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform } from 'millrace/platform';
import { pretendProvider } from './payment-provider.ts';
import { payments } from './payments.ts';
import { samplePayments, type SampleOptions } from './sample-payments.ts';

test('the sample data is deterministic and created once', async () => {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [payments({ provider: pretendProvider() })],
    roles: ['api'],
  });
  const { engines } = platform;
  const fill = (options: SampleOptions): Promise<readonly string[]> =>
    samplePayments((request) => platform.handle(request), options);
  const first = await fill({ payments: 5 });
  const count = (await engines.store.readAll().toArray()).length;
  const second = await fill({ payments: 5 });
  assert.deepEqual(second, first);
  assert.equal((await engines.store.readAll().toArray()).length, count);
  const other = await fill({ payments: 1, seed: 2 });
  assert.ok(!first.includes(other[0] ?? ''));
});
