// Several processes write to the same inboxes: each window has one digest, each reminder comes once, and
// no message is missing, although one of the processes is killed.

import assert from 'node:assert/strict';
import { createNotifier, notifications } from '../../modules/customers/index.ts';
import { createPlatform, type EngineUrls } from '../../src/platform/index.ts';
import { startChild, type Child } from '../../src/testing/index.ts';
import { inTime, isText, soakMinutes, until } from '../store/rig.ts';
import type { NotifyRaceInput } from './notify-race-main.ts';

const tenant = 'core';
const customers = ['ada', 'bob'];
/** A soak has more of each. */
const names = soakMinutes > 0 ? ['one', 'two', 'three'] : ['one', 'two'];
const messages = soakMinutes > 0 ? 40 : 6;
const times = soakMinutes > 0 ? 4 : 2;
const windowMs = 1_000;

export async function notifyRace(engines: EngineUrls): Promise<void> {
  const start = (name: string): Child => {
    const script = new URL('./notify-race-main.ts', import.meta.url);
    const input: NotifyRaceInput = { engines, name, customers, messages, windowMs };
    return startChild(script, { input });
  };
  await using platform = await createPlatform({
    engines,
    roles: ['api'],
    modules: [notifications()],
  });
  const { store } = platform.engines;
  const notifier = createNotifier({ ...platform, store, tenants: platform.tokens.tenants });
  const nag = { everyMs: 1_000, times };
  for (const customerId of customers) {
    const message = { category: 'alert', title: 'Answer', notificationId: 'nag', nag } as const;
    await notifier.notify({ tenant, customerId, message });
  }
  const children = names.map(start);
  const waitFor = (child: Child, word: string): Promise<unknown> =>
    inTime(word, child.message(isText(word)));
  try {
    await Promise.all(children.map((child) => waitFor(child, 'started')));
    const last = children.at(-1) ?? assert.fail('no process');
    await waitFor(last, 'notified');
    // The leases of the killed process must pass to another one.
    await last.kill();
    await Promise.all(children.slice(0, -1).map((child) => waitFor(child, 'notified')));
    await until('all digests and reminders are done', async () => {
      const states = await Promise.all(customers.map((id) => inboxOf(platform, id)));
      return states.every(({ digests, nags }) => Object.keys({ ...digests, ...nags }).length === 0);
    });
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
  const events = await Array.fromAsync(store.readAll());
  for (const customer of customers) {
    const own = events.filter(({ aggregate }) => aggregate.id === customer);
    const of = (type: string) =>
      own
        .filter((event) => event.type === `customer-inbox.${type}.v1`)
        .map(({ payload }) => payload);
    const closed = of('digest-closed') as { digestId: string; count: number }[];
    const opened = of('digest-opened') as { digestId: string; from: string }[];
    assert.equal(
      new Set(opened.map(({ from }) => from)).size,
      opened.length,
      'a window has more than one digest',
    );
    assert.deepEqual(
      closed.map(({ digestId }) => digestId),
      opened.map(({ digestId }) => digestId),
    );
    assert.equal(
      closed.reduce((sum, { count }) => sum + count, 0),
      messages * names.length,
    );
    const delivered = of('delivered') as { notice: { notificationId: string; category: string } }[];
    const digests = delivered.filter(({ notice }) => notice.category === 'digest');
    assert.deepEqual(
      digests.map(({ notice }) => notice.notificationId),
      closed.map(({ digestId }) => digestId),
    );
    assert.deepEqual(
      (of('reminded') as { step: number }[]).map(({ step }) => step),
      Array.from({ length: times }, (_, index) => index + 1),
    );
  }
  assert.equal(await platform.engines.subscriptions.deadLetters.count({}), 0);
}

async function inboxOf(platform: Awaited<ReturnType<typeof createPlatform>>, id: string) {
  const inbox = platform.modules.aggregates.get('notify.customerInbox.v1');
  assert.ok(inbox);
  const { state } = await platform.load(inbox, { tenant, id });
  return state as { readonly digests: object; readonly nags: object };
}
