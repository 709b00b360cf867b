import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createEnvelope } from '../../src/contracts/index.ts';
import { createPlatform } from '../../src/platform/index.ts';
import { taskType } from '../../src/tasks/index.ts';
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
