// A server with a small heap for the memory tests: the API on the given engines, and the KurrentDB protocol in memory.

import { createPlatform, type EngineUrls } from '../../src/platform/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface MemoryInput {
  readonly engines: EngineUrls;
}

export interface MemoryServer {
  readonly kind: 'serving';
  readonly url: string;
  readonly kurrentPort: number;
  readonly tokens: Readonly<Record<'append' | 'other' | 'read', string>>;
}

/** The highest values since the start. */
export interface MemoryUse {
  readonly kind: 'memory';
  readonly rssMax: number;
  readonly heapMax: number;
}

const { engines } = childInput() as MemoryInput;
const platform = await createPlatform({ engines });
await platform.start();
const api = await startApi(platform, { port: 0 });
const kurrent = await startKurrentServer(openMemory(kurrentStoreOptions).store, { port: 0 });
const tokenOf = async (scope: 'append' | 'read', name: string = scope) =>
  (await platform.tokens.create({ name, scopes: [scope], tenant: 'core' })).secret;

let rssMax = 0;
let heapMax = 0;
const measure = (): void => {
  const { rss, heapUsed } = process.memoryUsage();
  rssMax = Math.max(rssMax, rss);
  heapMax = Math.max(heapMax, heapUsed);
};
setInterval(measure, 20).unref();
process.on('message', () => {
  measure();
  tellParent({ kind: 'memory', rssMax, heapMax } satisfies MemoryUse);
});
tellParent({
  kind: 'serving',
  url: api.url,
  kurrentPort: kurrent.port,
  tokens: {
    append: await tokenOf('append'),
    read: await tokenOf('read'),
    other: await tokenOf('read', 'other'),
  },
} satisfies MemoryServer);
