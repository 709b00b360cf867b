import { Inject, Injectable } from '@nestjs/common';
import { ILOGGER, MapToOutbox, OnEvent, type ILogger, type MappedMessage } from 'millrace/nest';
import type { RecordedEvent } from 'millrace/store';
import { Terminal, type HandlerContext } from 'millrace/subscriptions';
import { APP_SETTINGS, type AppSettings } from './app-settings.ts';
import { paymentCompleted, type PaymentCompleted } from './payment-events.ts';

@Injectable()
export class PaymentMailer {
  constructor(
    @Inject(APP_SETTINGS) private readonly settings: AppSettings,
    @Inject(ILOGGER) private readonly logger: ILogger,
  ) {}

  @OnEvent(paymentCompleted)
  async onCompleted(
    { payload, correlationId, tenant }: RecordedEvent<PaymentCompleted>,
    { idempotencyKey, signal }: HandlerContext<unknown>,
  ): Promise<void> {
    if (payload.amount < 0) throw new Terminal('a payment cannot be negative');
    const response = await fetch(`${this.settings.receiver}/mail`, {
      method: 'POST',
      headers: { 'idempotency-key': idempotencyKey },
      body: JSON.stringify({ amount: payload.amount }),
      signal,
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    this.logger.info({ correlationId, tenant, operation: 'MAIL', phase: 'SENT' }, 'mail was sent');
  }

  @OnEvent('payment.refunded.v1')
  onRefunded({ payload }: RecordedEvent<{ readonly amount: number }>): void {
    this.logger.info({ operation: 'MAIL', phase: 'START' }, `refund of ${payload.amount}`);
  }
}

@Injectable()
export class PartnerMessages {
  @MapToOutbox('payment.*', { integrationType: 'webhook:partner-x' })
  toPartner({ aggregate, payload }: RecordedEvent<PaymentCompleted>): MappedMessage | undefined {
    if (payload.amount < 0) return undefined;
    return {
      payload: { paymentId: aggregate.id, amount: payload.amount },
      orderingKey: aggregate.id,
    };
  }
}
