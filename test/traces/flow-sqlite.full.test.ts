import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createEnvelope } from '../../src/contracts/index.ts';
import { createPlatform } from '../../src/platform/index.ts';
import { taskType } from '../../src/tasks/index.ts';
import { body, openApi } from '../../src/testing/support/server/api-rig.ts';
import type { Trace } from '../../src/traces/index.ts';
import { runMillrace } from '../cli-store-terminal.ts';
import { flowCases } from './flow-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-flow-'));
after(() => rmSync(folder, { recursive: true, force: true }));

flowCases('sqlite', async () => ({ store: `sqlite:${join(folder, 'events.db')}` }));

test('the command line shows the jobs of a flow, wherever their database is', async () => {
  for (const name of ['one', 'apart']) {
    const store = `sqlite:${join(folder, `${name}.db`)}`;
    const tasksUrl = name === 'one' ? store : `sqlite:${join(folder, `${name}-jobs.db`)}`;
    const correlationId = `flow-${name}`;
    await using platform = await createPlatform({
      engines: { store, tasks: tasksUrl },
      taskTypes: [taskType('email-send')],
    });
    await platform.start();
    const aggregate = { bc: 'shop', type: 'order', id: '1' };
    const event = createEnvelope(
      { type: 'order.placed.v1', payload: {} },
      { tenant: 'core', aggregate, correlationId },
    );
    await platform.engines.store.append('shop.order.v1-core-1', [event]);
    const tasks = await platform.tasks();
    const { id } = await tasks.enqueue({
      type: 'email-send',
      payload: {},
      tenant: 'core',
      correlationId,
      causationId: event.eventId,
    });
    const env = { MILLRACE_STORE: store, MILLRACE_TASKS: tasksUrl };
    const drawn = await runMillrace(['trace', correlationId, '--wait', '60000'], { env });
    assert.equal(drawn.code, 0, drawn.stderr);
    assert.match(drawn.stdout, /order\.placed\.v1/);
    assert.match(drawn.stdout, new RegExp(`⚙ email-send  queued {2}job ${id}`));
  }
});

test('the command line shows the same sagas of a flow as the console, and no aggregate as a saga', async () => {
  const store = `sqlite:${join(folder, 'sagas.db')}`;
  await using api = await openApi({}, { store });
  await api.fail('core', 'flow-sagas');
  // A type that a saga named "order" would have.
  const event = createEnvelope(
    { type: 'order.started.v1', payload: {} },
    {
      tenant: 'core',
      aggregate: { bc: 'shop', type: 'order', id: '1' },
      correlationId: 'flow-sagas',
    },
  );
  await api.platform.engines.store.append('shop.order.v1-core-1', [event]);
  const sagasOf = ({ nodes }: Trace) => nodes.filter(({ kind }) => kind === 'saga');
  const shown = sagasOf(
    await body(await api.ask('/admin/traces/flow-sagas', await api.token('read'))),
  );
  const trace = (...args: readonly string[]) =>
    runMillrace(['trace', 'flow-sagas', ...args], { env: { MILLRACE_STORE: store } });
  const json = await trace('--json');
  assert.equal(json.code, 0, json.stderr);
  const idsOf = (nodes: Trace['nodes']) => nodes.map(({ id }) => id).toSorted();
  assert.deepEqual(idsOf(sagasOf(JSON.parse(json.stdout) as Trace)), idsOf(shown));
  assert.deepEqual(
    idsOf(shown),
    ['destination', 'handler', 'saga'].map((id) => `saga banking.review.v1-core-${id}`),
  );
  assert.match((await trace()).stdout, /◆ review {2}parked: .*banking\.review\.v1-core-saga/);
});
