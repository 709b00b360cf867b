// Dispatchers that are killed, frozen and stopped while messages are enqueued.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createOutboxDispatcher } from '../../src/outbox/index.ts';
import { enqueued } from '../../src/testing/conformance/outbox/fixture.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { inRounds, isText, soakMinutes, until, type EngineName } from '../store/rig.ts';
import type { DispatcherInput } from './dispatcher-main.ts';
import { killSenders } from './kill-senders.ts';
import { openLedger } from './open-ledger.ts';
import { startReceiver } from './receiver.ts';

const leaseMs = soakMinutes > 0 ? 2_000 : 1_000;

export interface StoredLeases {
  /** The time until each stored lease ends, by the clock of the database. */
  remainingMs(url: string): Promise<readonly number[]>;
  /** Makes them end now, as time does. */
  expire(url: string): Promise<void>;
}

export function killCases(
  engine: EngineName,
  newUrl: () => Promise<string>,
  leases: StoredLeases,
): void {
  test(`the claims of a dispatcher on ${engine} that is killed are free within 15 seconds`, async () => {
    const url = await newUrl();
    await using ledger = await openLedger({ engine, url });
    const ids = await enqueued(ledger, ...Array.from({ length: 20 }, () => ({})));
    // A destination that accepts requests and never responds.
    const silent = createServer((socket) => void socket.on('error', () => undefined));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const receiver = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const input: DispatcherInput = { engine, url, receiver, seed: 0 };
    const child = startChild(new URL('./dispatcher-main.ts', import.meta.url), { input });
    try {
      await child.message(isText('started'));
      await until('messages are claimed', async () => (await ledger.counts()).CLAIMED > 0);
    } finally {
      await child.kill('SIGKILL');
      silent.close();
    }
    const remaining = await leases.remainingMs(url);
    assert.ok(remaining.length > 0);
    assert.ok(Math.max(...remaining) <= 15_000, remaining.join());
    await leases.expire(url);
    const sent: string[] = [];
    await using next = createOutboxDispatcher({
      ledger,
      deliver: async ({ id }) => void sent.push(id),
    });
    await next.start();
    await until('all are sent', async () => (await ledger.counts()).SENT === ids.length);
    assert.deepEqual(sent.toSorted(), ids.toSorted());
  });

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
