// A platform with the module behind a real server, for tests: programs and customers over HTTP and WebSocket.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import { createPlatform, type Platform } from '../platform/create-platform.ts';
import type { EngineUrls } from '../platform/engines/platform-engines.ts';
import type { TokenScope } from '../platform/tokens/token.ts';
import { startApi } from '../server/api/start-api.ts';
import { apiCaller, type ApiCaller } from '../testing/api-caller.ts';
import { notifications, type NotificationsOptions } from './customer-module.ts';

export interface CustomerRig extends AsyncDisposable {
  readonly platform: Platform;
  readonly url: string;
  caller(name: string, scopes: readonly TokenScope[], tenant?: string): Promise<ApiCaller>;
}

export async function customerRig(
  options: NotificationsOptions & { readonly clock?: Clock; readonly engines?: EngineUrls } = {},
): Promise<CustomerRig> {
  const { clock, engines, ...own } = options;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'millrace-notify-'));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const platform = stack.use(
    await createPlatform({
      engines: engines ?? { store: 'memory:', bus: `sqlite:${join(folder, 'bus.db')}` },
      modules: [notifications(own)],
      dispatcher: { tickIntervalMs: 50 },
      ...(clock === undefined ? {} : { clock }),
    }),
  );
  await platform.start();
  const { url } = stack.use(await startApi(platform, { port: 0 }));
  const all = stack.move();
  return {
    platform,
    url,
    async caller(name, scopes, tenant = 'core') {
      const { secret } = await platform.tokens.create({ name, scopes, tenant });
      return apiCaller(url, secret);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
