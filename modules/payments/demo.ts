// The module as an application configures it, with an in-memory provider and a webhook if PAYMENTS_WEBHOOK_URL is set.
// `sample` adds data.

import { webhookDestination } from 'millrace/destinations/webhook';
import { pretendProvider } from './payment-provider.ts';
import { payments } from './payments.ts';
export { samplePayments as sample } from './sample-payments.ts';

/** For a listener on this machine only; production needs a private secret. */
const secret = 'whsec_ZGVtby1vbmx5LW5vdC1hLXNlY3JldC1hdC1hbGw=';

export function demo(webhookUrl?: string): ReturnType<typeof payments> {
  return payments({
    provider: pretendProvider({ amountMax: 20_000 }),
    webhooks: webhookUrl === undefined ? undefined : { listener: listenerAt(webhookUrl) },
  });
}

function listenerAt(url: string): ReturnType<typeof webhookDestination> {
  return webhookDestination({
    endpoint: { id: 'listener', url, secrets: [secret] },
    allowHttp: true,
    allowAddresses: ['127.0.0.1/32', '::1/128'],
  });
}

export default demo(process.env['PAYMENTS_WEBHOOK_URL']);
