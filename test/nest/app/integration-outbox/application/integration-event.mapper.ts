import { Injectable } from '@nestjs/common';
import type { IntegrationEventMapper, IntegrationMessage } from 'millrace/outbox';
import type { RecordedEvent } from 'millrace/store';

@Injectable()
export class PaymentEventMapper implements IntegrationEventMapper {
  map({ type, aggregate }: RecordedEvent): readonly IntegrationMessage[] | null {
    if (!type.endsWith('.completed.v1')) return null;
    const message = { eventType: type, payload: { paymentId: aggregate.id } };
    return [
      { ...message, integrationType: 'kafka:payments' },
      { ...message, integrationType: 'webhook:partnerX' },
    ];
  }
}
