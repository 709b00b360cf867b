// The projector: its event types are those of ESDB_SUBSCRIPTION_PREFIX, its checkpoints are in the outbox's database.

import { Injectable } from '@nestjs/common';
import type { OutboxProjectorDefinition } from 'millrace/outbox';
import { PaymentEventMapper } from './integration-event.mapper.ts';

@Injectable()
export class EsdbToOutboxProjector {
  constructor(private readonly mapper: PaymentEventMapper) {}

  definition(): OutboxProjectorDefinition {
    return { name: 'sub:paymenthub:outbox:v1', mapper: this.mapper };
  }
}
