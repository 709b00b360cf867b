// Stands for a Kafka client: a broker with an HTTP interface, which the test provides.

import { Injectable } from '@nestjs/common';
import type { DeliveryMessage } from 'millrace/delivery';
import { receiverUrl } from '../../../outbox-environment.ts';

@Injectable()
export class KafkaPaymentsWorker {
  async publish({
    integrationType,
    sourceEventId,
    payload,
    headers,
  }: DeliveryMessage): Promise<void> {
    const topic = integrationType.slice('kafka:'.length);
    const response = await fetch(`${receiverUrl()}/topics/${topic}`, {
      method: 'POST',
      body: JSON.stringify({ key: sourceEventId, value: payload, headers }),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
  }
}
