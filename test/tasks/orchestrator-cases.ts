// The orchestrator groups on the progress streams, and a parent job that only the orchestrator can wake.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bus } from '../../src/bus/index.ts';
import { decideComplete } from '../../src/tasks/rules/decide-end.ts';
import { startTaskOrchestrator, taskType, type Tasks } from '../../src/tasks/index.ts';
import { openTasksAt, type TasksAddress } from './open-tasks.ts';

async function claimOne(tasks: Tasks, type: string) {
  const [claimed] = await tasks.claim({ worker: 'w', types: { [type]: 1 }, waitMs: 30_000 });
  return claimed ?? assert.fail(`no ${type} was claimed`);
}

/** Completes the job like a worker that is killed after the commit: the parent is not woken. */
async function completeAndDie(tasks: Tasks, id: string, type: string): Promise<void> {
  const { engine, clock, decideContext } = tasks.core;
  const [stored] = await engine.get([{ id, type }]);
  if (stored === undefined) assert.fail('missing');
  const { head, fields, signals } = decideComplete(stored, 'sent', decideContext(type));
  const guard = { fence: stored.head.fence };
  await engine.changeAndClaim([{ id, type, guard, head, fields, signals }], undefined, clock.now());
}

export function orchestratorCases(
  engine: string,
  open: () => Promise<{ readonly address: TasksAddress; readonly bus: Bus }>,
): void {
  test(`${engine}: the orchestrator wakes a parent job after the worker of its child died`, async () => {
    const { address, bus } = await open();
    await using streams = bus;
    await using tasks = await openTasksAt(address);
    tasks.setTypes([...tasks.types(), taskType('email-send')]);
    await tasks.enqueue({ type: 'report-gen', payload: null });
    const parent = await claimOne(tasks, 'report-gen');
    const children = { name: 'mails', tasks: [{ type: 'email-send', payload: { n: 1 } }] };
    await tasks.runChildren(parent.token, children);
    const child = await claimOne(tasks, 'email-send');
    await completeAndDie(tasks, child.task.id, 'email-send');
    assert.equal((await tasks.get(parent.task.id))?.state, 'waiting');

    await using orchestrator = startTaskOrchestrator(tasks, {
      consume: (definition, handler) => streams.consume(definition, handler),
    });
    const again = await claimOne(tasks, 'report-gen');
    assert.equal(again.task.id, parent.task.id);
    const result = await tasks.runChildren(again.token, children);
    assert.equal(result.kind === 'ended' ? result.children[0]?.result : undefined, 'sent');
    await tasks.complete(again.token);

    const progress = await streams.stream('gbe.tasks.email-send.progress');
    assert.ok(progress?.groups.some(({ name }) => name === 'email-send-orchestrator'));
    await orchestrator[Symbol.asyncDispose]();
  });

  test(`${engine}: the orchestrator starts for an added type, and retries while it cannot read`, async () => {
    const { address, bus } = await open();
    await using streams = bus;
    await using tasks = await openTasksAt(address);
    const groups: string[] = [];
    let failuresLeft = 2;
    const added = Promise.withResolvers<void>();
    await using orchestrator = startTaskOrchestrator(tasks, {
      everyMs: 10,
      async consume(definition, handler) {
        failuresLeft -= 1;
        if (failuresLeft >= 0) throw new Error('the bus is unreachable');
        groups.push(`${definition.group} of ${definition.subject}`);
        if (groups.length === 2) added.resolve();
        else tasks.setTypes([...tasks.types(), taskType('email-send')]);
        return streams.consume(definition, handler);
      },
    });
    await added.promise;
    assert.deepEqual(groups, [
      'report-gen-orchestrator of gbe.tasks.report-gen.progress',
      'email-send-orchestrator of gbe.tasks.email-send.progress',
    ]);
    await orchestrator[Symbol.asyncDispose]();
  });
}
