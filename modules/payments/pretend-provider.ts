// A provider that moves no money, for `millrace dev` and for tests: in memory, it forgets with its process.

import type { Charge, ChargeAnswer, PaymentProvider } from './payment-provider.ts';

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
