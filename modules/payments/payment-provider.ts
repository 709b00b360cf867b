// The provider behind a port, and the two jobs that talk to it: each asks the provider, which tells
// repeats by their key, and only then says what came of it by a command, which the payment tells repeats
// of by its state. Killed anywhere between, the job is done again from its beginning.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import type { DeliveryContext, DeliveryMessage, Destination } from 'millrace/delivery';
import { hasCode } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { z } from 'zod';
import { amount, currencyCode, streamId } from './currency.ts';
import { failPayment, processPayment } from './payment.ts';
import { processJobId } from './payment-outbox.ts';

export interface Charge {
  /** One key, one charge. */
  readonly key: string;
  readonly tenant: string;
  readonly paymentId: string;
  readonly amount: number;
  readonly currency: string;
  readonly account: string;
  readonly creditor: string;
}

export type ChargeAnswer =
  | { readonly kind: 'accepted'; readonly reference: string }
  | { readonly kind: 'declined'; readonly reason: string };

interface CallContext {
  /** The time is up, or the process stops. */
  readonly signal: AbortSignal;
}

/** Whoever moves the money. To throw is to be asked again. */
export interface PaymentProvider {
  /** Asked again with the same key, it charges nothing again and gives the same answer. */
  charge(charge: Charge, context: CallContext): Promise<ChargeAnswer>;
  /**
   * Gives back what was charged under this key, and declines it from now on: a charge that was under
   * way may arrive behind its cancellation.
   */
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
    const answer = await provider.charge({ key, tenant, ...job }, context);
    const command =
      answer.kind === 'accepted'
        ? processPayment({ reference: answer.reference })
        : failPayment({ reason: answer.reason });
    try {
      await send(requestFor(message, context, { tenant, id: job.paymentId, command }));
    } catch (error) {
      if (!hasCode(error, 'COMMAND_REFUSED')) throw error;
      // The payment has failed in the meantime: what was charged for it must not stay so.
      if (answer.kind === 'accepted') {
        await provider.cancel({ key, tenant, paymentId: job.paymentId }, context);
      }
      return { kind: 'sent', skipped: error.message };
    }
    return answer.kind === 'accepted'
      ? { kind: 'sent', receipt: answer.reference }
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

/** Part of the flow that the payment began, and of its trace. */
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
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(typeof traceparent === 'string' ? { headers: { traceparent } } : {}),
  };
}

// A provider that moves no money, for `millrace dev` and for tests: in memory, it forgets with its process.
export interface PretendProvider extends PaymentProvider {
  /** By key: what became of each. */
  readonly charges: ReadonlyMap<string, ChargeAnswer>;
}

export interface PretendOptions {
  /** More than this is declined. Default: nothing is. */
  readonly amountMax?: number;
}

export function pretendProvider({
  amountMax = Number.MAX_SAFE_INTEGER,
}: PretendOptions = {}): PretendProvider {
  const charges = new Map<string, ChargeAnswer>();
  const answerTo = ({ paymentId, amount }: Charge): ChargeAnswer =>
    amount > amountMax
      ? { kind: 'declined', reason: 'limit-exceeded' }
      : { kind: 'accepted', reference: `pretended-${paymentId}` };
  return {
    charges,
    async charge(charge) {
      const answer = charges.get(charge.key) ?? answerTo(charge);
      charges.set(charge.key, answer);
      return answer;
    },
    async cancel({ key }) {
      charges.set(key, { kind: 'declined', reason: 'cancelled' });
    },
  };
}
