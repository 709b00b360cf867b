// The product with notifications, which kills itself at one hop of the notifications for one customer.

import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { composeNotificationMail, notifications } from '../../modules/customers/index.ts';
import { childInput } from '../../src/testing/child-process.ts';
import { killableModule, serveProduct } from './killable-product.ts';

/** The customer, and the hop: `<hop> <event type>`, `due` (a timer is due), or `mail` (sent but not settled). */
export interface NotifyKill {
  readonly who: string;
  readonly at: string;
}

export interface NotifyProductInput {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly smtp: string;
  readonly killPoint?: NotifyKill | undefined;
}

const { store, host, port, smtp, killPoint } = childInput() as NotifyProductInput;

function killAt(who: string | undefined, at: string): void {
  if (killPoint?.who === who && killPoint?.at === at) process.kill(process.pid, 'SIGKILL');
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeNotificationMail,
});
const notify = notifications({
  email: async (message, context) => {
    const outcome = await email(message, context);
    killAt(message.orderingKey, 'mail');
    return outcome;
  },
});
await serveProduct(
  killableModule(
    notify,
    (hop, { type, aggregate }) => killAt(aggregate.id, `${hop} ${type}`),
    (name, data) => killAt((data as { readonly customerId: string }).customerId, name),
  ),
  { store, host, port },
);
