// The process that the payments test kills: it does everything except accepting requests. Provider and
// webhook receiver run in the test and are called over HTTP.

import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { createPlatform } from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { payments, type ChargeResult } from '../../modules/payments/index.ts';

export interface PaymentsWorkerInput {
  readonly store: string;
  /** The base URL of the provider (`/charge`, `/cancel`) and of the webhook (`/hook`). */
  readonly url: string;
  readonly secret: string;
}

const { store, url, secret } = childInput() as PaymentsWorkerInput;

async function post(path: string, body: object, signal: AbortSignal): Promise<Response> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response;
}

const platform = await createPlatform({
  engines: { store },
  leaseMs: 1_000,
  dispatcher: {
    leaseMs: 4_000,
    timeoutMs: 3_000,
    tickIntervalMs: 50,
    schedule: { initialMs: 100, factor: 2, capMs: 5_000, jitterMs: 0 },
  },
  modules: [
    payments({
      provider: {
        charge: async (charge, { signal }) =>
          (await (await post('/charge', charge, signal)).json()) as ChargeResult,
        cancel: async (charge, { signal }) => void (await post('/cancel', charge, signal)),
      },
      webhooks: {
        shop: webhookDestination({
          endpoint: { id: 'shop', url: `${url}/hook`, secrets: [secret] },
          allowAddresses: ['127.0.0.1/32'],
          allowHttp: true,
        }),
      },
    }),
  ],
});
await platform.start();
tellParent('started');
