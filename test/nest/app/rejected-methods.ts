// Methods that must not compile: a decorator checks the parameters of its method.

import { MapToOutbox, OnEvent, type MappedMessage } from 'millrace/nest';
import type { RecordedEvent } from 'millrace/store';
import type { HandlerContext } from 'millrace/subscriptions';
import type { ClientBase } from 'pg';
import { paymentCompleted } from './payment-events.ts';

export class RejectedMethods {
  // @ts-expect-error the amount is a number
  @OnEvent(paymentCompleted)
  wrongPayload(_event: RecordedEvent<{ readonly amount: string }>): void {}

  // @ts-expect-error no such event type
  @OnEvent('PaymentCompleted')
  wrongType(_event: RecordedEvent): void {}

  // @ts-expect-error the amount is a number
  @MapToOutbox(paymentCompleted, { integrationType: 'webhook:x' })
  wrongMapping(_event: RecordedEvent<{ readonly amount: string }>): MappedMessage | undefined {
    return undefined;
  }

  // @ts-expect-error a mapper is synchronous: a message depends on its event only
  @MapToOutbox('payment.*', { integrationType: 'webhook:x' })
  async lateMapping(): Promise<MappedMessage> {
    return { payload: {} };
  }

  @OnEvent('payment.refunded.v1')
  async right(
    _event: RecordedEvent<{ readonly amount: number }>,
    { transaction }: HandlerContext<ClientBase>,
  ): Promise<number> {
    const client = await transaction();
    return (await client.query('select 1')).rows.length;
  }
}
