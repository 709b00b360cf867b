// One of several processes that notify the same customers and run the due timers.

import { notifications, createNotifier } from '../../modules/customers/index.ts';
import { createPlatform, type EngineUrls } from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface NotifyRaceInput {
  readonly engines: EngineUrls;
  readonly name: string;
  readonly customers: readonly string[];
  readonly messages: number;
  readonly windowMs: number;
}

const { engines, name, customers, messages, windowMs } = childInput() as NotifyRaceInput;
const platform = await createPlatform({ engines, leaseMs: 1_000, modules: [notifications()] });
await platform.start();
const { store } = platform.engines;
const notifier = createNotifier({ ...platform, store, tenants: platform.tokens.tenants });
tellParent('started');
const digest = { key: 'sales', windowMs };
for (let index = 0; index < messages; index += 1) {
  const notificationId = `${name}-${index}`;
  await Promise.all(
    customers.map(async (customerId) => {
      const message = { category: 'info', title: 'Sold', digest, notificationId } as const;
      // A command that lost too many version conflicts is sent again.
      for (;;) {
        try {
          await notifier.notify({ tenant: 'core', customerId, message });
          return;
        } catch (error) {
          if ((error as { code?: string }).code !== 'VERSION_CONFLICT') throw error;
        }
      }
    }),
  );
}
tellParent('notified');
