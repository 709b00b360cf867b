// The whole product with the collab module, which kills itself at one step of one flow: what the step made is
// stored, and whoever goes on from there has just begun.

import { smtpDestination } from '../../src/adapters/smtp/index.ts';
import { createPlatform, type PlatformModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { childInput, tellParent } from '../../src/testing/index.ts';
import { collab, composeMail } from '../../modules/collab/index.ts';

/** By the event's type; `bot` is the message that is the bot's, `mail` is accepted and not settled. */
export interface Strike {
  readonly flow: string;
  readonly at: string;
}

export interface CollabProductInput {
  readonly store: string;
  readonly port: number;
  readonly smtp: string;
  readonly strike?: Strike;
}

const { store, port, smtp, strike } = childInput() as CollabProductInput;

function dieAt(flow: string | undefined, at: string): void {
  if (strike?.flow === flow && strike?.at === at) process.kill(process.pid, 'SIGKILL');
}

function seen({ type, correlationId, payload }: RecordedEvent): void {
  const isBot = (payload as { authorId?: string }).authorId === 'bot';
  dieAt(correlationId, isBot ? 'bot' : type);
}

/** The same module; whoever of it is given an event may not live to see what comes of it. */
function mortal(module: PlatformModule): PlatformModule {
  const { reactors, outbox = [] } = module;
  return {
    ...module,
    reactors: (context) =>
      (typeof reactors === 'function' ? reactors(context) : (reactors ?? [])).map((each) => ({
        ...each,
        react(event, more) {
          seen(event);
          return each.react(event, more);
        },
      })),
    outbox: outbox.map((each) => ({
      ...each,
      mapper: {
        map(event) {
          seen(event);
          return each.mapper.map(event);
        },
      },
    })),
  };
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeMail,
});
const platform = await createPlatform({
  engines: { store },
  leaseMs: 1_000,
  dispatcher: {
    leaseMs: 2_000,
    timeoutMs: 1_500,
    tickIntervalMs: 50,
    schedule: { initialMs: 100, factor: 2, capMs: 5_000, jitterMs: 0 },
  },
  modules: [
    mortal(
      collab({
        email: async (message, context) => {
          const outcome = await email(message, context);
          dieAt(message.correlationId, 'mail');
          return outcome;
        },
      }),
    ),
  ],
});
await platform.start();
await startApi(platform, { port });
tellParent('started');
