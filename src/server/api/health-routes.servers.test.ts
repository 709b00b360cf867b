// Readiness on real brokers: a configured bus or task engine that does not respond takes the process out of service.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform, type EngineUrls } from '../../platform/index.ts';
import { startNats, startRedis } from '../../testing/index.ts';
import { startApi } from './start-api.ts';

interface Readiness {
  readonly status: 'ok' | 'failing';
  readonly checks: Readonly<Record<string, { readonly status: string; readonly detail?: string }>>;
}

const brokers = [
  { name: 'Redis', start: () => startRedis() },
  { name: 'NATS', start: () => startNats() },
] as const;

for (const { name, start } of brokers) {
  test(`${name} for bus and tasks: readiness fails while it does not respond, and names the roles`, async () => {
    await using broker = await start();
    await using ready = await openReadiness({ bus: broker.url, tasks: broker.url });
    assert.deepEqual(await ready.ask(), { code: 200, failing: [] });
    // Connections stay open, and nothing is answered.
    broker.pause();
    assert.deepEqual(await ready.ask(), { code: 503, failing: ['bus', 'tasks'] });
    broker.resume();
    await ready.until(200);
    await broker.kill();
    await ready.until(503);
    assert.deepEqual(await ready.ask(), { code: 503, failing: ['bus', 'tasks'] });
    await broker.start();
    await ready.until(200);
  });
}

test('a broker that never responded is named, although nothing has used it yet', async () => {
  await using ready = await openReadiness({ bus: 'redis://127.0.0.1:1' });
  assert.deepEqual(await ready.ask(), { code: 503, failing: ['bus', 'tasks'] });
});

async function openReadiness(engines: EngineUrls): Promise<
  AsyncDisposable & {
    ask(): Promise<{ readonly code: number; readonly failing: readonly string[] }>;
    until(code: number): Promise<void>;
  }
> {
  await using opening = new AsyncDisposableStack();
  const platform = opening.use(
    await createPlatform({ engines: { store: 'memory:', ...engines }, roles: ['api'] }),
  );
  await platform.start();
  const often = { perSecond: 10_000, burst: 10_000 };
  const server = opening.use(
    await startApi(platform, { port: 0, rateLimits: { known: often, unknown: often } }),
  );
  const opened = opening.move();
  const ask = async () => {
    const response = await fetch(`${server.url}/health/ready`);
    const { checks } = (await response.json()) as Readiness;
    const failing = Object.entries(checks).filter(([, { status }]) => status === 'failing');
    return { code: response.status, failing: failing.map(([role]) => role) };
  };
  return {
    ask,
    async until(code) {
      for (;;) if ((await ask()).code === code) return;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
