import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform } from 'millrace/platform';
import { demo, sample } from './demo.ts';
import { until } from './testing/web-rig.ts';

test('the sample data is created once, its tags are applied, and every user has a token', async () => {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [await demo()],
  });
  await platform.start();
  const first = await sample(platform);
  const tasks = platform.documents({ bc: 'collab', aggregate: 'task' });
  const shown = async (id: string): Promise<unknown> => {
    const { type, status, assignee } = ((await tasks.get('core', id))?.document ?? {}) as Readonly<
      Record<string, unknown>
    >;
    return [type, status, assignee].join(' ');
  };
  await until(async () => (await shown('wheel')) === 'task In Progress bob');
  await until(async () => (await shown('leak')) === 'bug Investigating ada');
  for (const [name, secret] of first) {
    const { token } = platform.tokens.verify(secret) ?? {};
    assert.deepEqual([token?.name, token?.tenant, token?.scopes], [name, 'core', ['use']]);
  }

  const posted = async (): Promise<number> => {
    const events = await Array.fromAsync(platform.engines.store.readAll());
    return events.filter(({ user, stream }) => stream.startsWith('collab.') && user?.id !== 'bot')
      .length;
  };
  const lag = async (): Promise<number> => {
    const lags = platform.modules.reactors.map(({ name }) => platform.subscriptions.lag(name));
    return (await Promise.all(lags)).reduce((sum, { behind }) => sum + behind, 0);
  };
  await until(async () => (await lag()) === 0);
  const before = await posted();
  const second = await sample(platform);
  await until(async () => (await lag()) === 0);
  assert.equal(await posted(), before);
  assert.equal(platform.tokens.verify(first.get('ada') ?? ''), undefined);
  assert.notEqual(platform.tokens.verify(second.get('ada') ?? ''), undefined);
});
