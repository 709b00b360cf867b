// What somebody who runs the module writes: here with a provider that pretends, and one webhook where the
// environment names it. `sample` fills it.

import { webhookDestination } from 'millrace/adapters/webhook';
import { payments } from './payments.ts';
import { pretendProvider } from './payment-provider.ts';
export { samplePayments as sample } from './sample-payments.ts';

/** For a listener on this machine; a real one has a secret of its own. */
const secret = 'whsec_ZGVtby1vbmx5LW5vdC1hLXNlY3JldC1hdC1hbGw=';

export function demo(webhookUrl?: string): ReturnType<typeof payments> {
  return payments({
    provider: pretendProvider({ amountMax: 20_000 }),
    ...(webhookUrl === undefined ? {} : { webhooks: { listener: listenerAt(webhookUrl) } }),
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
