// The commands on a KurrentDB store, whose checkpoints, read models and sagas are in another database.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openMemory } from '../src/engines/memory/index.ts';
import { openSqlite } from '../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../src/server/kurrent/index.ts';
import { startSubscription, subscription } from '../src/subscriptions/index.ts';
import { currencyStream, renamed, runMillrace, useWorkspace } from './cli-store-terminal.ts';

const name = 'sub:banking:failing:v1';

describe('millrace on a KurrentDB store', () => {
  const home = useWorkspace();

  test('finds subscriptions, dead letters, projections and sagas in MILLRACE_OUTBOX', async () => {
    await using backing = openMemory(kurrentStoreOptions);
    await using server = await startKurrentServer(backing.store, { port: 0 });
    const outbox = `sqlite:${home.at('side.db')}`;
    await using side = await openSqlite(outbox);
    await backing.store.append(currencyStream('USD'), [renamed('USD', 'a')]);
    const failing = subscription({
      name,
      retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1 },
      handler() {
        throw new Error('broken');
      },
    });
    const roles = { store: backing.store, subscriptions: side.subscriptions };
    await using runner = await startSubscription(roles, failing);
    await runner.whenCaughtUp();
    const url = server.url.replace(/^kurrentdb:/, 'esdb:');
    const env = { MILLRACE_STORE: url, MILLRACE_OUTBOX: outbox };
    const run = (line: string) => runMillrace(line.split(' '), { cwd: home.folder(), env });
    for (const [line, pattern] of [
      ['subscriptions list', new RegExp(name)],
      ['subscriptions lag', / bytes? +\d/],
      ['dlq list', /broken/],
      ['projections status', /no projections/],
      ['sagas list', /^/],
    ] as const) {
      const { code, stdout, stderr } = await run(line);
      assert.deepEqual([code, stderr], [0, ''], line);
      assert.match(stdout, pattern, line);
    }
    for (const line of ['subscriptions list', 'dlq list', 'projections status', 'sagas list']) {
      const { code, stderr } = await runMillrace([...line.split(' '), '--store', url], {
        cwd: home.folder(),
        env: { MILLRACE_OUTBOX: outbox },
      });
      assert.deepEqual([code, stderr], [0, ''], `${line} --store`);
    }
    const without = await runMillrace(['subscriptions', 'list'], {
      cwd: home.folder(),
      env: { MILLRACE_STORE: server.url },
    });
    assert.equal(without.code, 1);
    assert.match(without.stderr, /^NOT_SUPPORTED: .*checkpoints.*MILLRACE_OUTBOX/);
  });
});
