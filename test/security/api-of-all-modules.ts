// The API with all modules of this repository, for the tests that go through every route.

import { Agent, request } from 'node:http';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import { startApi, type ApiOptions, type ApiServer } from '../../src/server/api/start-api.ts';
import { allModules } from '../../tools/scope-reference.ts';

export interface SecuredApi extends AsyncDisposable {
  readonly platform: Platform;
  readonly api: ApiServer;
  /** The status of a request with an `authorization` header, or without one. */
  call(method: string, path: string, authorization?: string): Promise<number>;
}

export async function openAllModules(options: ApiOptions = {}): Promise<SecuredApi> {
  await using opened = new AsyncDisposableStack();
  const platform = opened.use(
    await createPlatform({ engines: { store: 'memory:' }, modules: allModules() }),
  );
  const unlimited = { perSecond: 1_000_000, burst: 1_000_000 };
  const api = opened.use(
    await startApi(platform, {
      port: 0,
      metrics: async () => '',
      rateLimits: { known: unlimited, unknown: unlimited },
      ...options,
    }),
  );
  // Much cheaper than fetch, for thousands of requests.
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  opened.defer(() => agent.destroy());
  const all = opened.move();
  return {
    platform,
    api,
    call: (method, path, authorization) =>
      new Promise((resolve, reject) => {
        const headers = authorization === undefined ? {} : { authorization };
        const url = `${api.url}${path.replaceAll(/\{\w+\}/g, 'x')}`;
        request(url, { method, headers, agent }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        })
          .on('error', reject)
          .end();
      }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
