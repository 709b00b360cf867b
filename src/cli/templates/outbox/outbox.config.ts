// What leaves sample-context, and where to. `npx millrace outbox run` runs it.

import { webhookDestination } from 'millrace/adapters/webhook';
import { defineOutbox } from 'millrace/platform';

export default defineOutbox(({ webhookTimeoutMs }) => ({
  projectors: [
    {
      // Its checkpoint has this name: another name starts from the first event.
      name: 'sub:sample-context:outbox:v1',
      mapper: {
        // Identifiers and what the receiver needs; nothing for events that are nobody else's business.
        map: ({ type, aggregate }) =>
          aggregate.bc === 'sample-context'
            ? {
                integrationType: 'webhook:partner',
                eventType: type,
                payload: { id: aggregate.id },
                orderingKey: aggregate.id,
              }
            : null,
      },
    },
  ],
  destinations: {
    webhook: webhookDestination({
      endpoint: {
        id: 'partner',
        url: process.env['PARTNER_URL'] ?? 'https://partner.example/hook',
        // whsec_…, agreed with the partner.
        secrets: [process.env['PARTNER_SECRET'] ?? ''],
      },
      timeoutMs: webhookTimeoutMs,
    }),
  },
}));
