// SMS: what is sent is decided here, who sends it is a provider behind a small port.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';

export interface Sms {
  /** E.164: `+15551234567`. */
  readonly to: string;
  readonly body: string;
}

/** The port: whoever sends short messages. */
export interface SmsProvider extends AsyncDisposable {
  send(
    sms: Sms,
    context: { readonly idempotencyKey: string; readonly signal: AbortSignal },
  ): Promise<DeliveryOutcome>;
}

export interface SmsOptions {
  readonly provider: SmsProvider;
  /** What is sent, and to whom; undefined: nothing is. */
  readonly compose: (message: DeliveryMessage) => Sms | undefined | Promise<Sms | undefined>;
}

/**
 * A destination that sends short messages.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { smsDestination, twilioProvider } from 'millrace/adapters/sms';
 *
 * await using provider = twilioProvider({ accountSid: 'AC…', authToken: '…', from: '+15550001111' });
 * const sms = smsDestination({
 *   provider,
 *   compose: ({ payload }) => ({ to: String(payload['phone']), body: 'Your code was used.' }),
 * });
 * const { deliver } = createDelivery({ destinations: { 'sms:alerts': sms } });
 */
export function smsDestination({ provider, compose }: SmsOptions): Destination {
  return async (message, { idempotencyKey, signal }) => {
    const sms = await compose(message);
    if (sms === undefined) return { kind: 'sent', skipped: 'no SMS is to be sent for it' };
    if (!/^\+[1-9]\d{6,14}$/.test(sms.to)) {
      return { kind: 'dead', error: 'the number is not one such as +15551234567' };
    }
    signal.throwIfAborted();
    return provider.send(sms, { idempotencyKey, signal });
  };
}
