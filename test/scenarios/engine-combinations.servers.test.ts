// A platform on combinations of engines in which every pair of engines of two roles occurs where both have the role: an
// event reaches its read model, its outgoing message, the bus and a job.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { createPlatform, defineModule, type EngineUrls } from '../../src/platform/index.ts';
import { projection, readModel } from '../../src/projections/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { sharedPostgres, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { task } from '../../src/tasks/index.ts';
import { newEvent, streamName } from '../store/rig.ts';

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());
const folder = await mkdtemp(join(tmpdir(), 'millrace-combinations-'));
opened.defer(() => rm(folder, { recursive: true, force: true }));
const { url: nats } = opened.use(await startNats());
const { url: redis } = await sharedRedis();
let files = 0;

const urlOf: Readonly<Record<string, () => Promise<string>>> = {
  memory: async () => 'memory:',
  sqlite: async () => `sqlite:${join(folder, `${(files += 1)}.db`)}`,
  postgres: async () => (await sharedPostgres()).url,
  redis: async () => redis,
  nats: async () => nats,
  async kurrentdb() {
    const backing = opened.use(openMemory(kurrentStoreOptions));
    return opened.use(await startKurrentServer(backing.store, { port: 0 })).url;
  },
};

const fields = ['store', 'outbox', 'keys', 'bus', 'tasks'] as const;

/** Store, outbox, keys, bus, tasks; a dash: not configured. */
const combinations = [
  'memory - - - -',
  'memory sqlite redis nats sqlite',
  'sqlite - - - -',
  'sqlite postgres nats redis -',
  'sqlite - redis - nats',
  'postgres - - sqlite sqlite',
  'postgres sqlite - nats redis',
  'postgres - redis - -',
  'postgres - nats - -',
  'kurrentdb sqlite - redis nats',
  'kurrentdb postgres redis sqlite -',
  'kurrentdb postgres nats - redis',
];

for (const line of combinations) {
  test(`${fields.join(', ')}: ${line}`, async () => {
    const engines = Object.fromEntries(
      await Promise.all(
        line.split(' ').map(async (name, at) => [fields[at], await urlOf[name]?.()] as const),
      ),
    ) as EngineUrls;
    const prefix = `c${line.replaceAll(/[^a-z]/g, '')}`;
    const sent: string[] = [];
    const ran: unknown[] = [];
    const items = projection({
      name: `sub:shop:${prefix}:v1`,
      readModel: readModel<{ readonly seen: boolean }>({
        bc: 'rig',
        aggregate: 'item',
        version: 1,
      }),
      on: { 'item.added.v1': () => ({ seen: true }) },
    });
    const module = defineModule({
      name: 'shop',
      uses: ['bus'],
      projections: [items],
      outbox: [
        {
          name: `sub:shop:${prefix}-outbox:v1`,
          mapper: {
            map: ({ eventId }) => ({
              integrationType: 'audit',
              eventType: 'x.y.v1',
              payload: { eventId },
            }),
          },
        },
      ],
      destinations: {
        audit: async ({ payload }) => void sent.push((payload as { eventId: string }).eventId),
      },
      tasks: [task(prefix, ({ payload }) => void ran.push(payload))],
    });
    await using platform = await createPlatform({ engines, modules: [module] });
    await platform.start();
    const event = newEvent(`e-${prefix}`);
    const { position } = await platform.engines.store.append(streamName(prefix), [event]);
    await platform.waitFor(items, position ?? assert.fail());
    const bus = await platform.engines.bus();
    await bus.publish({ subject: `${prefix}.events.api.error`, payload: 1 });
    assert.equal((await bus.stream(`${prefix}.events.api.error`))?.length, 1);
    await (await platform.tasks()).enqueue({ type: prefix, payload: { n: 1 } });
    await eventually('the message is sent and the job runs', async () => {
      return sent.includes(event.eventId) && ran.length === 1;
    });
    assert.deepEqual(
      platform.engines.roles.filter(({ warning }) => warning !== undefined),
      [],
    );
  });
}
