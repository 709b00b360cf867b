// The module: currencies, accounts and payments, the saga and the outbox.

import type { Destination, DestinationSettings } from 'millrace/delivery';
import { defineModule, type PlatformModule } from 'millrace/platform';
import { account, accountProjection } from './account.ts';
import { currency, currencyProjection } from './currency.ts';
import { paymentOutbox, providerJobs } from './payment-outbox.ts';
import { paymentProcess } from './payment-process.ts';
import { cancelDestination, processDestination, type PaymentProvider } from './payment-provider.ts';
import { payment, paymentProjection } from './payment.ts';

type To = Destination | DestinationSettings;

export interface PaymentsOptions {
  readonly provider: PaymentProvider;
  /** Timeout of one call of the provider. Default: 10 s. */
  readonly providerTimeoutMs?: number | undefined;
  /** How long to wait for the provider before a payment is withdrawn. Default: 15 minutes. */
  readonly answerWithinMs?: number | undefined;
  /** By name: each gets every completed and failed payment, as `webhook:<name>`. */
  readonly webhooks?: Readonly<Record<string, To>> | undefined;
  /** Gets the same messages, as `kafka:payments`. */
  readonly kafka?: To | undefined;
}

const paymentsLimits = { providerTimeoutMs: 10_000, answerWithinMs: 15 * 60_000 } as const;

export function payments(options: PaymentsOptions): PlatformModule {
  const { provider, webhooks = {}, kafka } = options;
  const { providerTimeoutMs: timeoutMs = paymentsLimits.providerTimeoutMs } = options;
  const { answerWithinMs = paymentsLimits.answerWithinMs } = options;
  // Only configured destinations: messages for others would stay in the outbox.
  const listeners: Record<string, To> = {
    ...(kafka === undefined ? {} : { 'kafka:payments': kafka }),
    ...Object.fromEntries(Object.entries(webhooks).map(([name, to]) => [`webhook:${name}`, to])),
  };
  return defineModule({
    name: 'payments',
    aggregates: [currency, account, payment],
    // The saga and the provider send the other commands.
    commands: {
      'currency.create': 'append',
      'currency.update': 'append',
      'account.open': 'append',
      'payment.request': 'append',
    },
    projections: [currencyProjection, accountProjection, paymentProjection],
    sagas: [paymentProcess({ answerWithinMs })],
    outbox: [paymentOutbox({ listeners: Object.keys(listeners) })],
    destinations: (context) => ({
      ...listeners,
      [providerJobs.process]: { send: processDestination(provider, context), timeoutMs },
      [providerJobs.cancel]: { send: cancelDestination(provider), timeoutMs },
    }),
  });
}
