import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { useWorkspace } from '../cli-store-terminal.ts';

describe('millrace sagas list --index', () => {
  const home = useWorkspace();

  test('reads the index in Redis page by page, without a store', async () => {
    await using redis = await startRedis();
    {
      await using index = await openRole(redis.url, 'sagas');
      for (const key of ['a', 'b', 'c']) {
        const saga = 'shop.fulfilment.v1';
        const address = { stream: `${saga}-core-${key}`, saga, tenant: 'core', key, shard: 0 };
        const state = { status: 'parked', revision: 1, updatedAtMs: 1_759_226_400_000 } as const;
        await index.put({ ...address, ...state, dueAtMs: undefined, reason: 'said-no' });
      }
    }
    const first = await home.millrace(`sagas list --index ${redis.url} --status parked --limit 2`);
    assert.equal(first.code, 0);
    assert.match(first.stdout, /^parked .*core-a {2}said-no\nparked .*core-b {2}said-no\n$/);
    assert.match(first.stderr, /--after shop\.fulfilment\.v1-core-b/);
    const rest = await home.millrace(
      `sagas list --index ${redis.url} --saga shop.fulfilment.v1 --after shop.fulfilment.v1-core-b`,
    );
    assert.match(rest.stdout, /^parked .*core-c {2}said-no\n$/);
    const none = await home.millrace(`sagas list --index ${redis.url} --tenant nobody`);
    assert.deepEqual([none.code, none.stdout], [0, '']);
  });

  test('reports an invalid URL without its password', async () => {
    const { code, stderr } = await home.millrace('sagas list --index mysql://u:secret@h/db');
    assert.notEqual(code, 0);
    assert.match(stderr, /^CONFIG_INVALID/);
    assert.doesNotMatch(stderr, /secret/);
    const mistyped = await home.millrace('sagas list --index sqlite:nowhere.db');
    assert.match(mistyped.stderr, /^CONFIG_INVALID: there is no event store/);
  });
});
