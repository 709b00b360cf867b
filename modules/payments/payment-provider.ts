// The port of the payment provider, the two jobs that call it, and an in-memory provider. Each job calls the provider and
// then sends a command with the result. Both steps are idempotent, so a killed job simply runs again.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import type { DeliveryContext, DeliveryMessage, Destination } from 'millrace/delivery';
import { hasCode } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { z } from 'zod';
import { amount, currencyCode, streamId } from './currency.ts';
import { processJobId } from './payment-outbox.ts';
import { failPayment, processPayment } from './payment.ts';

export interface Charge {
  /** Idempotency key of the charge. */
  readonly key: string;
  readonly tenant: string;
  readonly paymentId: string;
  readonly amount: number;
  readonly currency: string;
  readonly account: string;
  readonly creditor: string;
}

export type ChargeResult =
  | { readonly kind: 'accepted'; readonly reference: string }
  | { readonly kind: 'declined'; readonly reason: string };

interface CallContext {
  /** Aborted by the timeout or the shutdown. */
  readonly signal: AbortSignal;
}

/** Moves the money. A call that throws is retried. */
export interface PaymentProvider {
  /** A repeated call with the same key charges nothing and returns the same response. */
  charge(charge: Charge, context: CallContext): Promise<ChargeResult>;
  /** Refunds the charge of this key and declines later ones: a charge may arrive after its cancellation. */
  cancel(charge: Pick<Charge, 'key' | 'tenant' | 'paymentId'>, context: CallContext): Promise<void>;
}

const processJob = z.object({
  paymentId: z.string(),
  account: streamId,
  amount,
  currency: currencyCode,
  creditor: streamId,
});
const cancelJob = z.object({ paymentId: z.string() });

export function processDestination(
  provider: PaymentProvider,
  { send }: Pick<ModuleContext, 'send'>,
): Destination {
  return async (message, context) => {
    const { tenantId: tenant = '' } = message;
    const job = processJob.parse(message.payload);
    const key = processJobId(tenant, job.paymentId);
    const result = await provider.charge({ key, tenant, ...job }, context);
    const command =
      result.kind === 'accepted'
        ? processPayment({ reference: result.reference })
        : failPayment({ reason: result.reason });
    try {
      await send(requestFor(message, context, { tenant, id: job.paymentId, command }));
    } catch (error) {
      if (!hasCode(error, 'COMMAND_REJECTED')) throw error;
      // The payment has failed in the meantime, so the charge must be refunded.
      if (result.kind === 'accepted') {
        await provider.cancel({ key, tenant, paymentId: job.paymentId }, context);
      }
      return { kind: 'sent', skipped: error.message };
    }
    return result.kind === 'accepted'
      ? { kind: 'sent', receipt: result.reference }
      : { kind: 'sent' };
  };
}

export function cancelDestination(provider: PaymentProvider): Destination {
  return async (message, context) => {
    const { tenantId: tenant = '' } = message;
    const { paymentId } = cancelJob.parse(message.payload);
    await provider.cancel({ key: processJobId(tenant, paymentId), tenant, paymentId }, context);
  };
}

/** The command continues the flow and the trace of the payment. */
function requestFor(
  { sourceEventId, headers }: DeliveryMessage,
  { correlationId, signal }: DeliveryContext,
  target: { readonly tenant: string; readonly id: string; readonly command: NewCommand },
): Parameters<ModuleContext['send']>[0] {
  const { tenant, id, command } = target;
  const { traceparent } = headers ?? {};
  return {
    ...target,
    signal,
    causationId: sourceEventId,
    idempotencyKey: buildIdempotencyKey({
      tenant,
      service: 'payments',
      operation: command.type.replace('.', '-'),
      naturalKey: id,
    }),
    correlationId,
    headers: typeof traceparent === 'string' ? { traceparent } : undefined,
  };
}

/** A provider in memory that moves no money, for `millrace dev` and tests. */
export interface PretendProvider extends PaymentProvider {
  /** Results of all charges by idempotency key. */
  readonly charges: ReadonlyMap<string, ChargeResult>;
}

export interface PretendOptions {
  /** Larger amounts are declined. Default: no limit. */
  readonly amountMax?: number | undefined;
}

export function pretendProvider({
  amountMax = Number.MAX_SAFE_INTEGER,
}: PretendOptions = {}): PretendProvider {
  const charges = new Map<string, ChargeResult>();
  const resultOf = (charge: Charge): ChargeResult =>
    charge.amount > amountMax
      ? { kind: 'declined', reason: 'limit-exceeded' }
      : { kind: 'accepted', reference: `pretended-${charge.paymentId}` };
  return {
    charges,
    async charge(charge) {
      const result = charges.get(charge.key) ?? resultOf(charge);
      charges.set(charge.key, result);
      return result;
    },
    async cancel({ key }) {
      charges.set(key, { kind: 'declined', reason: 'cancelled' });
    },
  };
}
