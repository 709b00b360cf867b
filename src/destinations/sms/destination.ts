// Delivers messages by SMS through a provider.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';

export interface Sms {
  /** The number in E.164 format: `+15551234567`. */
  readonly to: string;
  readonly body: string;
}

/** The port of SMS gateways. */
export interface SmsProvider extends AsyncDisposable {
  send(
    sms: Sms,
    context: { readonly idempotencyKey: string; readonly signal: AbortSignal },
  ): Promise<DeliveryOutcome>;
}

export interface SmsOptions {
  readonly provider: SmsProvider;
  /** Returns the SMS; undefined: send none. */
  readonly compose: (message: DeliveryMessage) => Sms | undefined | Promise<Sms | undefined>;
}

/**
 * A destination that sends short messages.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { smsDestination, twilioProvider } from 'millrace/destinations/sms';
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
    if (sms === undefined) return { kind: 'sent', skipped: 'compose returned no SMS' };
    if (!/^\+[1-9]\d{6,14}$/.test(sms.to)) {
      return { kind: 'dead', error: 'the phone number must have the format +15551234567' };
    }
    signal.throwIfAborted();
    return provider.send(sms, { idempotencyKey, signal });
  };
}
