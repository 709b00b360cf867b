// The whole product with the collab module, which kills itself at one step of one flow: what the step made is
// stored, and whoever goes on from there has just begun.

import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { childInput } from '../../src/testing/child-process.ts';
import { collab, composeMail } from '../../modules/collab/index.ts';
import { mortalModule, serveProduct } from './mortal-product.ts';

/** By the event's type; `bot` is the message that is the bot's, `mail` is accepted and not settled. */
export interface Strike {
  readonly flow: string;
  readonly at: string;
}

export interface CollabProductInput {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly smtp: string;
  readonly strike?: Strike;
}

const { store, host, port, smtp, strike } = childInput() as CollabProductInput;

function dieAt(flow: string | undefined, at: string): void {
  if (strike?.flow === flow && strike?.at === at) process.kill(process.pid, 'SIGKILL');
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeMail,
});
const product = collab({
  email: async (message, context) => {
    const outcome = await email(message, context);
    dieAt(message.correlationId, 'mail');
    return outcome;
  },
});
await serveProduct(
  mortalModule(product, (_hop, { type, correlationId, payload }) => {
    const isBot = (payload as { authorId?: string }).authorId === 'bot';
    dieAt(correlationId, isBot ? 'bot' : type);
  }),
  { store, host, port },
);
