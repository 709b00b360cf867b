// A process whose destination always fails, and which runs bulk actions. It writes the idempotency key of each attempt.

import { appendFileSync } from 'node:fs';
import { createPlatform, defineModule } from '../../../platform/index.ts';
import { Terminal } from '../../../subscriptions/index.ts';
import { taskType } from '../../../tasks/index.ts';

interface Input {
  readonly url: string;
  readonly keysFile: string;
  /** The process is killed right after this number of replays was committed. */
  readonly killAfter?: number;
}

const { url, keysFile, killAfter } = JSON.parse(process.argv[2] ?? '{}') as Input;
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
const ledger = platform.engines.outbox;
if (ledger !== undefined && killAfter !== undefined) {
  const replay = ledger.replay.bind(ledger);
  let replays = 0;
  Object.assign(ledger, {
    replay: async (...given: Parameters<typeof replay>) => {
      const count = await replay(...given);
      replays += 1;
      if (replays === killAfter) process.kill(process.pid, 'SIGKILL');
      return count;
    },
  });
}
await platform.start();
process.send?.('started');
