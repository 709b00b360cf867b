import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { throwawayCertificate } from '../../testing/support/throwaway-certificate.ts';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { startHttpReceiver } from '../../testing/servers/http-receiver.ts';
import { webhookDestination, type WebhookOptions } from './destination.ts';
import { verifyWebhook } from './signature.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

async function deliver(url: string, options: Partial<WebhookOptions>): Promise<DeliveryOutcome> {
  await using send = webhookDestination({
    endpoint: { id: 'acme', url, secrets: [secret] },
    allowAddresses: ['127.0.0.0/8'],
    timeoutMs: 60_000,
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    ...options,
  });
  const delivery = createDelivery({ destinations: { webhook: { send, timeoutMs: 60_000 } } });
  return await delivery.deliver({
    id: 'o-1',
    integrationType: 'webhook',
    eventType: 'payment.completed.v1',
    payload: {},
    sourceStreamId: 'paymenthub.payment.v1-core-1',
    sourceEventId: 'e-1',
  });
}

test('verifies the TLS certificate against the name, although the address is pinned', async () => {
  using certificate = throwawayCertificate();
  await using receiver = await startHttpReceiver({ tls: certificate });
  const ca = readFileSync(certificate.authorityFile, 'utf8');
  const { port } = receiver;
  assert.equal((await deliver(`https://localhost:${port}/`, { ca })).kind, 'sent');
  const { headers, body } = receiver.requests[0] ?? assert.fail();
  assert.equal(verifyWebhook({ headers, body, secrets: [secret] }).id, 'e-1');

  const otherName = await deliver(`https://hooks.example:${port}/`, { ca });
  assert.ok(otherName.kind === 'retry' && /altnames/i.test(otherName.error), otherName.kind);
  const unknownAuthority = await deliver(`https://localhost:${port}/`, {});
  assert.equal(unknownAuthority.kind, 'retry');
  assert.equal(receiver.requests.length, 1);
});
