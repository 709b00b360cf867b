// Starts a platform with this module and its HTTP server, for tests.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from 'millrace/foundation';
import { createPlatform, type EngineUrls, type Platform, type TokenScope } from 'millrace/platform';
import { startApi } from 'millrace/server/api';
import { apiCaller, type ApiCaller } from 'millrace/testing';
import { notifications, type NotificationsOptions } from '../customer-module.ts';

export interface CustomerRig extends AsyncDisposable {
  readonly platform: Platform;
  readonly url: string;
  caller(name: string, scopes: readonly TokenScope[], tenant?: string): Promise<ApiCaller>;
}

export async function customerRig(
  options: NotificationsOptions & {
    readonly clock?: Clock | undefined;
    readonly engines?: EngineUrls | undefined;
  } = {},
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
