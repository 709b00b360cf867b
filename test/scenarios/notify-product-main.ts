// The whole product with notifications, which kills itself at one hop of one customer's story: what was stored
// before is stored, and whoever goes on from there has just begun.

import { smtpDestination } from '../../src/adapters/smtp/index.ts';
import { composeNotificationMail, notifications } from '../../src/customers/index.ts';
import { createPlatform, type PlatformModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { childInput, tellParent } from '../../src/testing/index.ts';

/** Whose story, and where in it: `<hop> <event type>`, `due` (the clock strikes), or `mail` (not settled). */
export interface NotifyStrike {
  readonly who: string;
  readonly at: string;
}

export interface NotifyProductInput {
  readonly store: string;
  readonly port: number;
  readonly smtp: string;
  readonly strike?: NotifyStrike;
}

const { store, port, smtp, strike } = childInput() as NotifyProductInput;

function dieAt(who: string | undefined, at: string): void {
  if (strike?.who === who && strike?.at === at) process.kill(process.pid, 'SIGKILL');
}

interface Seen {
  readonly type: string;
  readonly aggregate: { readonly id: string };
}

function seen(hop: string, { type, aggregate }: Seen): void {
  dieAt(aggregate.id, `${hop} ${type}`);
}

/** The same module; whoever of it is given an event may not live to see what comes of it. */
function mortal(module: PlatformModule): PlatformModule {
  const { reactors, subscriptions, sagas = [], outbox = [] } = module;
  return {
    ...module,
    reactors: (context) =>
      (typeof reactors === 'function' ? reactors(context) : (reactors ?? [])).map((each) => ({
        ...each,
        react(event, more) {
          seen('reactor', event);
          return each.react(event, more);
        },
      })),
    subscriptions: (context) =>
      (typeof subscriptions === 'function' ? subscriptions(context) : (subscriptions ?? [])).map(
        (each) => ({
          ...each,
          async handler(event, more) {
            seen('bus', event);
            await each.handler?.(event, more);
            seen('published', event);
          },
        }),
      ),
    sagas: sagas.map((each) => ({
      ...each,
      react(event, view) {
        seen('clock', event);
        return each.react(event, view);
      },
      timers: new Map(
        [...each.timers].map(([name, fire]) => [
          name,
          (view: Parameters<typeof fire>[0]) => {
            dieAt((view.data as { readonly customerId: string }).customerId, name);
            return fire(view);
          },
        ]),
      ),
    })),
    outbox: outbox.map((each) => ({
      ...each,
      mapper: {
        map(event) {
          seen('outbox', event);
          return each.mapper.map(event);
        },
      },
    })),
  };
}

const email = await smtpDestination({
  transport: smtp,
  from: 'Mill <mill@example.org>',
  compose: composeNotificationMail,
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
      notifications({
        email: async (message, context) => {
          const outcome = await email(message, context);
          dieAt(message.orderingKey, 'mail');
          return outcome;
        },
      }),
    ),
  ],
});
await platform.start();
await startApi(platform, { port });
tellParent('started');
