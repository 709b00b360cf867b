import { Body, Controller, Inject, Post } from '@nestjs/common';
import { buildStreamName, createEnvelope } from 'millrace/contracts';
import { EVENT_STORE } from 'millrace/nest';
import type { EventStore } from 'millrace/store';
import { paymentCompleted } from './payment-events.ts';

interface NewPayment {
  readonly id: string;
  readonly amount: number;
}

@Controller('payments')
export class PaymentsController {
  constructor(@Inject(EVENT_STORE) private readonly store: EventStore) {}

  @Post()
  async complete(@Body() { id, amount }: NewPayment): Promise<{ readonly eventId: string }> {
    const aggregate = { bc: 'paymenthub', type: 'payment', id };
    const user = { id: 'u1' };
    const event = createEnvelope(paymentCompleted({ amount }), { tenant: 'core', aggregate, user });
    const stream = buildStreamName('paymenthub', 'payment', 1, 'core', id);
    await this.store.append(stream, [event]);
    return { eventId: event.eventId };
  }
}
