// Sample data for `millrace dev`: currencies, accounts and payments.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import { idFromKey } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { openAccount } from './account.ts';
import { createCurrency } from './currency.ts';
import { requestPayment } from './payment.ts';

export interface SampleOptions {
  readonly tenant?: string | undefined;
  readonly payments?: number | undefined;
  /** A different seed gives different ids and amounts. */
  readonly seed?: number | undefined;
}

const currencies = { EUR: 'Euro', USD: 'US Dollar', ZAR: 'South African Rand' } as const;
const codes = Object.keys(currencies);
/** Too little for some of the payments. */
const balance = 100_000;
const amountMax = 25_000;

/** Idempotent: a second run creates nothing. */
export async function samplePayments(
  send: ModuleContext['send'],
  { tenant = 'core', payments = 20, seed = 1 }: SampleOptions = {},
): Promise<readonly string[]> {
  const sendOnce = (id: string, command: NewCommand): Promise<unknown> =>
    send({
      tenant,
      id,
      command,
      idempotencyKey: buildIdempotencyKey({
        tenant,
        service: 'sample-data',
        operation: command.type.replace('.', '-'),
        naturalKey: id,
      }),
    });
  for (const [code, name] of Object.entries(currencies)) {
    await sendOnce(code, createCurrency({ name, decimals: 2, enabled: true }));
    await sendOnce(accountOf(code), openAccount({ currency: code, balance }));
  }
  const below = randomBelow(seed);
  const ids: string[] = [];
  for (let each = 0; each < payments; each += 1) {
    const id = idFromKey(`sample payment ${seed} ${each}`);
    const currency = codes[below(codes.length)] ?? 'EUR';
    await sendOnce(
      id,
      requestPayment({
        account: accountOf(currency),
        amount: 1 + below(amountMax),
        currency,
        creditor: `shop-${1 + below(5)}`,
      }),
    );
    ids.push(id);
  }
  return ids;
}

function accountOf(code: string): string {
  return `sample-${code.toLowerCase()}`;
}

/** Pseudorandom integers below `max`, deterministic by seed (xorshift). */
function randomBelow(seed: number): (max: number) => number {
  // Xorshift never leaves the state zero.
  let state = (seed ^ 0x9e_37_79_b9) >>> 0 || 1;
  return (max) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state % max;
  };
}
