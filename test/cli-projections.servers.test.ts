// `millrace projections` with read models in Redis, as `MILLRACE_KEYS` or the configuration file names it; Redis is read
// by a raw client.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { createPlatform, defineModule } from '../src/platform/index.ts';
import { projection, readModel } from '../src/projections/index.ts';
import { sharedRedis } from '../src/testing/servers/shared-servers.ts';
import { jsonOf, renamed, runMillrace, workFolder } from './cli-store-terminal.ts';

type Versions = readonly [ReturnType<typeof projection>, ReturnType<typeof projection>];

for (const [named, bc] of [
  // Other tests share the Redis server and use the bounded context `banking`.
  ['the environment', 'retired-names'],
  ['the configuration file', 'filed-names'],
] as const) {
  const category = `${bc.replace('-n', 'N')}.currency.v1`;
  const [one, two] = [1, 2].map((version) =>
    projection({
      name: `sub:cli:${bc}:v${version}`,
      readModel: readModel<object>({ bc, aggregate: 'currency', version }),
      filter: { category },
      on: { 'currency.renamed.v1': () => ({ version }) },
    }),
  ) as unknown as Versions;

  test(`retiring a version removes its keys from the Redis of ${named}, and a process that defines it starts`, async () => {
    await using folder = await workFolder();
    const { url: keys } = await sharedRedis();
    const store = `sqlite:${folder.path}/events.db`;
    const modules = [defineModule({ name: 'cli', projections: [one, two] })];
    const config = { engines: { store, keys }, modules };
    const redis = new Redis(keys);
    const keysOf = async (version: number): Promise<string[]> => {
      const found = await redis.keys(`app:{core}:${bc}:currency:v${version}:*`);
      return found.toSorted();
    };
    try {
      {
        await using platform = await createPlatform(config);
        let position = await platform.engines.store.head();
        for (const id of ['USD', 'EUR', 'ZAR']) {
          const appended = await platform.engines.store.append(`${category}-core-${id}`, [
            renamed(id, id),
          ]);
          ({ position } = appended);
        }
        await platform.start();
        await Promise.all([platform.waitFor(one, position), platform.waitFor(two, position)]);
      }
      const expected = (version: number): string[] =>
        ['EUR', 'USD', 'ZAR', 'meta:fences', 'meta:generation', 'set:all'].map(
          (name) => `app:{core}:${bc}:currency:v${version}:${name}`,
        );
      assert.deepEqual(await keysOf(1), expected(1));
      assert.deepEqual(await keysOf(2), expected(2));
      const isFile = named === 'the configuration file';
      if (isFile) {
        const text = `export default ${JSON.stringify({ engines: { store, keys } })};`;
        await writeFile(join(folder.path, 'millrace.config.mjs'), text);
      }
      const env = isFile ? {} : { MILLRACE_STORE: store, MILLRACE_KEYS: keys };
      const ask = (...line: string[]) =>
        runMillrace(['projections', ...line, '--json'], { cwd: folder.path, env });
      assert.deepEqual(jsonOf(await ask('switch', two.name)), {
        family: `${bc}.currency`,
        active: 2,
      });
      assert.deepEqual(jsonOf(await ask('retire', one.name, '--yes')), { removed: 3 });
      assert.deepEqual(await keysOf(1), []);
      assert.deepEqual(await keysOf(2), expected(2));
      await using platform = await createPlatform(config);
      await platform.start();
      const statuses = await platform.engines.readModelVersions.list(`${bc}.currency`);
      assert.deepEqual(
        statuses.map(({ version, status }) => [version, status]),
        [
          [1, 'retired'],
          [2, 'ready'],
        ],
      );
    } finally {
      redis.disconnect();
    }
  });
}
