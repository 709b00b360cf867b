// A process whose destination always fails, and which runs bulk actions. It writes the idempotency key of each attempt.

import { appendFileSync } from 'node:fs';
import { createPlatform, defineModule } from '../../../platform/index.ts';
import { Terminal } from '../../../subscriptions/index.ts';
import { taskType } from '../../../tasks/index.ts';

interface Input {
  readonly url: string;
  readonly keysFile: string;
}

const { url, keysFile } = JSON.parse(process.argv[2] ?? '{}') as Input;
const platform = await createPlatform({
  engines: { store: url },
  modules: [
    defineModule({
      name: 'shop',
      destinations: {
        partner: {
          breaker: false,
          async send({ id }, { idempotencyKey }) {
            appendFileSync(keysFile, `${id} ${idempotencyKey}\n`);
            throw new Terminal('out of order');
          },
        },
      },
    }),
  ],
  taskTypes: [taskType('report-gen')],
  leaseMs: 1_000,
  taskSweepEveryMs: 100,
  dispatcher: { leaseMs: 1_000, tickIntervalMs: 50 },
});
await platform.start();
process.send?.('started');
