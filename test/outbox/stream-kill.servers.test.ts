import { test } from 'node:test';
import { startChild } from '../../src/testing/child-process.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { inRounds, soakMinutes } from '../store/rig.ts';
import { killSenders } from './kill-senders.ts';
import { openLedger } from './open-ledger.ts';
import { startReceiver } from './receiver.ts';
import type { StreamRelayInput } from './stream-relay-main.ts';

const integrationType = 'kafka:killed';
const leaseMs = soakMinutes > 0 ? 2_000 : 1_000;

test('stream relays that are killed lose nothing, and keep the order of each key', () =>
  inRounds(async (seed) => {
    const { url } = await sharedPostgres();
    await using receiver = await startReceiver();
    await using ledger = await openLedger({ engine: 'postgres', url });
    await ledger.streams.declare(integrationType, { lanes: 6 });
    let started = 0;
    await killSenders({
      seed,
      ledger,
      url,
      receiver,
      leaseMs,
      start() {
        started += 1;
        const input = { engine: 'postgres', url, receiver: receiver.url, leaseMs } as const;
        return startChild(new URL('./stream-relay-main.ts', import.meta.url), {
          input: { ...input, seed: seed + started, integrationType } satisfies StreamRelayInput,
        });
      },
      message: (each) => ({
        integrationType,
        ...(each % 5 === 0 ? {} : { orderingKey: `k${each % 11}` }),
      }),
    });
  }));
