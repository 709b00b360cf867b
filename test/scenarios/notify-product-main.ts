// The product with notifications, which kills itself at one hop of one customer's story.

import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { composeNotificationMail, notifications } from '../../modules/customers/index.ts';
import { childInput } from '../../src/testing/child-process.ts';
import { mortalModule, serveProduct } from './mortal-product.ts';

/** Whose story, and where in it: `<hop> <event type>`, `due` (the clock strikes), or `mail` (not settled). */
export interface NotifyStrike {
  readonly who: string;
  readonly at: string;
}

export interface NotifyProductInput {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly smtp: string;
  readonly strike?: NotifyStrike;
}

const { store, host, port, smtp, strike } = childInput() as NotifyProductInput;

function dieAt(who: string | undefined, at: string): void {
  if (strike?.who === who && strike?.at === at) process.kill(process.pid, 'SIGKILL');
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeNotificationMail,
});
const notify = notifications({
  email: async (message, context) => {
    const outcome = await email(message, context);
    dieAt(message.orderingKey, 'mail');
    return outcome;
  },
});
await serveProduct(
  mortalModule(
    notify,
    (hop, { type, aggregate }) => dieAt(aggregate.id, `${hop} ${type}`),
    (name, data) => dieAt((data as { readonly customerId: string }).customerId, name),
  ),
  { store, host, port },
);
