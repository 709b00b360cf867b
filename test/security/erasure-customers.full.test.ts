// After `forget`, no file contains the contact, the preferences or a notification of the customer.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { customerSubject } from '../../modules/customers/customer-contact.ts';
import { createNotifier } from '../../modules/customers/customer-notifier.ts';
import { notifications } from '../../modules/customers/customer-module.ts';
import {
  customerProjection,
  notificationProjection,
} from '../../modules/customers/customer-projections.ts';
import { Terminal } from '../../src/foundation/handler-outcome.ts';
import { createPlatform } from '../../src/platform/create-platform.ts';
import { eventually, rejectsWith } from '../../src/testing/assertions.ts';
import { filesWith } from './forensic-files.ts';

const marker = 'Zelda-7731';
const at = { tenant: 'core', customerId: 'cust_1' } as const;
const other = { tenant: 'core', customerId: 'cust_2' } as const;
/** More than the events between two snapshots. */
const noticeCount = 60;

test('after forget, no file contains a notification of the customer', async () => {
  const root = mkdtempSync(join(tmpdir(), 'millrace-customers-'));
  const folder = join(root, '.millrace');
  const failing = async (): Promise<never> => {
    throw new Terminal('no mail server');
  };
  try {
    {
      await using platform = await createPlatform({
        engines: { store: `sqlite:${join(folder, 'events.db')}` },
        modules: [notifications({ email: failing })],
      });
      await platform.start();
      const { store, outbox } = platform.engines;
      assert.ok(outbox !== undefined);
      const notifier = createNotifier({
        handle: (request) => platform.handle(request),
        documents: (family) => platform.documents(family),
        load: platform.load,
        store,
        tenants: platform.tokens.tenants,
      });
      const contact = { email: `${marker}@example.org`, topic: 'ops' };
      await notifier.changeContact({ ...at, contact });
      await notifier.configure({
        ...at,
        preferences: {
          timeZone: 'UTC',
          // Held notifications and an open digest are in the state, and therefore in its snapshot.
          quietHours: [{ from: '00:00', to: '23:59' }],
          categories: {
            alert: { enabled: true, channels: ['socket', 'topic', 'email'], breaksQuiet: true },
          },
        },
      });
      const title = `Dear ${marker}`;
      for (let count = 0; count < noticeCount; count += 1) {
        const notificationId = `n-${count}`;
        await notifier.notify({ ...at, message: { category: 'alert', title, notificationId } });
      }
      const info = { category: 'info', title, body: title } as const;
      await notifier.notify({ ...at, message: { ...info, notificationId: 'held' } });
      const digest = { key: 'daily', windowMs: 86_400_000 };
      await notifier.notify({ ...at, message: { ...info, digest } });
      await notifier.notify({
        ...other,
        message: { category: 'info', notificationId: 'kept', title: 'Hi' },
      });
      const written = await store.head();
      await platform.waitFor(notificationProjection, written);
      const bus = await platform.engines.bus();
      const messages = () => Array.fromAsync(bus.read('gbe.notify.>'));
      // Each alert on the subject of the customer and on its topic; the other customer has one notification.
      await eventually(async () => (await messages()).length === 2 * noticeCount + 1);
      await eventually(async () => (await outbox.counts()).DEAD === noticeCount);
      assert.notDeepEqual(filesWith(folder, marker), []);

      await store.forget(customerSubject(at.tenant, at.customerId));
      const head = await store.head();
      await platform.waitFor(notificationProjection, head);
      await platform.waitFor(customerProjection, head);
      assert.deepEqual((await notifier.list(at)).items, []);
      assert.equal((await notifier.list(other)).items.length, 1);
      assert.deepEqual(
        (await messages()).map(({ payload }) => (payload as { title: string }).title),
        ['Hi'],
      );
      await rejectsWith(() => notifier.notify({ ...at, message: info }), 'SUBJECT_FORGOTTEN');
      await notifier.broadcast({ tenant: 'core', category: 'announcement', title: 'To all' });
      await eventually(async () => (await notifier.list(other)).items.length === 2);
      await eventually(async () => filesWith(folder, marker).length === 0);
    }
    assert.deepEqual(filesWith(folder, marker), []);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
