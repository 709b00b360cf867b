// Which channel sends an integration type. Each type has its own BullMQ queue.

import { Injectable } from '@nestjs/common';
import type { MillraceOutboxOptions } from 'millrace/nest';
import { KafkaPaymentsWorker } from '../application/workers/kafka-payments.worker.ts';
import { webhookPartnerX } from '../application/workers/webhook-partnerx.worker.ts';

@Injectable()
export class QueueRouter {
  constructor(private readonly kafka: KafkaPaymentsWorker) {}

  destinations(): NonNullable<MillraceOutboxOptions['destinations']> {
    return {
      kafka: (message) => this.kafka.publish(message),
      'webhook:partnerX': webhookPartnerX(),
    };
  }
}
