// Something to look at in `millrace dev`: the same currencies, accounts and payments at every start.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import { idFromKey } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { openAccount } from './account.ts';
import { createCurrency } from './currency.ts';
import { requestPayment } from './payment.ts';

export interface SampleOptions {
  readonly tenant?: string;
  readonly payments?: number;
  /** Another one gives other amounts, under other ids. */
  readonly seed?: number;
}

const currencies = { EUR: 'Euro', USD: 'US Dollar', ZAR: 'South African Rand' } as const;
const codes = Object.keys(currencies);
/** Some of the payments find too little of it. */
const balance = 100_000;
const amountMax = 25_000;

/** Sent again, as at the next start, all of it is recognised: nothing happens twice. */
export async function samplePayments(
  send: ModuleContext['send'],
  { tenant = 'core', payments = 20, seed = 1 }: SampleOptions = {},
): Promise<readonly string[]> {
  const ask = (id: string, command: NewCommand): Promise<unknown> =>
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
    await ask(code, createCurrency({ name, decimals: 2, enabled: true }));
    await ask(accountOf(code), openAccount({ currency: code, balance }));
  }
  const below = dice(seed);
  const ids: string[] = [];
  for (let each = 0; each < payments; each += 1) {
    const id = idFromKey(`sample payment ${seed} ${each}`);
    const currency = codes[below(codes.length)] ?? 'EUR';
    await ask(
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

/** Whole numbers from 0 to below `max`, the same ones for the same seed (an xorshift). */
function dice(seed: number): (max: number) => number {
  // Zero would stay zero.
  let state = (seed ^ 0x9e_37_79_b9) >>> 0 || 1;
  return (max) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state % max;
  };
}
