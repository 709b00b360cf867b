// Dispatchers that are killed, frozen and stopped while messages are enqueued.

import { test } from 'node:test';
import { startChild } from '../../src/testing/child-process.ts';
import { inRounds, soakMinutes, type EngineName } from '../store/rig.ts';
import type { DispatcherInput } from './dispatcher-main.ts';
import { killSenders } from './kill-senders.ts';
import { openLedger } from './open-ledger.ts';
import { startReceiver } from './receiver.ts';

const leaseMs = soakMinutes > 0 ? 2_000 : 1_000;

export function killCases(engine: EngineName, newUrl: () => Promise<string>): void {
  test(`dispatchers on ${engine} that are killed lose no message and leave none claimed`, () =>
    inRounds(async (seed) => {
      const url = await newUrl();
      await using receiver = await startReceiver();
      await using ledger = await openLedger({ engine, url });
      let started = 0;
      await killSenders({
        seed,
        ledger,
        url,
        receiver,
        leaseMs,
        start() {
          started += 1;
          const input = { engine, url, receiver: receiver.url, seed: seed + started, leaseMs };
          return startChild(new URL('./dispatcher-main.ts', import.meta.url), {
            input: input satisfies DispatcherInput,
          });
        },
        message: (each) => (each % 2 === 0 ? {} : { orderingKey: `k${each % 5}` }),
      });
    }));
}
