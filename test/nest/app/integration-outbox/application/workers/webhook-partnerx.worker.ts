import { webhookDestination } from 'millrace/destinations/webhook';
import { receiverUrl } from '../../../outbox-environment.ts';

export function webhookPartnerX(): ReturnType<typeof webhookDestination> {
  return webhookDestination({
    endpoint: {
      id: 'partnerX',
      url: `${receiverUrl()}/partnerX`,
      secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    },
    allowAddresses: ['127.0.0.1/32'],
    allowHttp: true,
  });
}
