// The product with the collab module, which kills itself at one step of one flow: the result of the step
// is stored, and its consumers have just started.

import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { childInput } from '../../src/testing/child-process.ts';
import { collab, composeMail } from '../../modules/collab/index.ts';
import { killableModule, serveProduct } from './killable-product.ts';

/** The step is an event type, `bot` (the bot's message) or `mail` (sent but not settled). */
export interface KillPoint {
  readonly flow: string;
  readonly at: string;
}

export interface CollabProductInput {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly smtp: string;
  readonly killPoint?: KillPoint | undefined;
}

const { store, host, port, smtp, killPoint } = childInput() as CollabProductInput;

function killAt(flow: string | undefined, at: string): void {
  if (killPoint?.flow === flow && killPoint?.at === at) process.kill(process.pid, 'SIGKILL');
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeMail,
});
const product = collab({
  email: async (message, context) => {
    const outcome = await email(message, context);
    killAt(message.correlationId, 'mail');
    return outcome;
  },
});
await serveProduct(
  killableModule(product, (_hop, { type, correlationId, payload }) => {
    const isBot = (payload as { authorId?: string }).authorId === 'bot';
    killAt(correlationId, isBot ? 'bot' : type);
  }),
  { store, host, port },
);
