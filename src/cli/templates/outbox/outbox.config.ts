// The outgoing messages of sample-context and their destinations. Run it with `npx millrace outbox run`.

import { webhookDestination } from 'millrace/destinations/webhook';
import { defineOutbox } from 'millrace/platform';

export default defineOutbox(({ webhookTimeoutMs }) => ({
  // The bounded context whose streams are read.
  bc: 'sample-context',
  projectors: [
    {
      // The name of the checkpoint: a new name starts from the first event.
      name: 'sub:sample-context:outbox:v1',
      mapper: {
        // Send only identifiers and fields that the receiver needs; return null for internal events.
        map: ({ type, aggregate }) => ({
          integrationType: 'webhook:partner',
          eventType: type,
          payload: { id: aggregate.id },
          orderingKey: aggregate.id,
        }),
      },
    },
  ],
  destinations: {
    webhook: webhookDestination({
      endpoint: {
        id: 'partner',
        url: process.env['PARTNER_URL'] ?? 'https://partner.example/hook',
        // whsec_…, shared with the partner.
        secrets: [process.env['PARTNER_SECRET'] ?? ''],
      },
      timeoutMs: webhookTimeoutMs,
    }),
  },
}));
