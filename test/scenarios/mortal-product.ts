// The whole product with one module, which kills itself at a hop: what was stored before is stored, and whoever
// goes on from there has just begun.

import { createPlatform, type PlatformModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { tellParent } from '../../src/testing/child-process.ts';

/** Who is about to see the event, or, `published`, has. */
type Hop = 'bus' | 'clock' | 'outbox' | 'published' | 'reactor';
type Seen = (hop: Hop, event: Pick<RecordedEvent, 'aggregate' | 'payload' | 'type'> & Flow) => void;
interface Flow {
  readonly correlationId?: string;
}

/** The same module; whoever of it is given an event may not live to see what comes of it. */
export function mortalModule(
  module: PlatformModule,
  seen: Seen,
  /** A timer of a saga is due. */
  due: (name: string, data: unknown) => void = () => undefined,
): PlatformModule {
  const { reactors = [], subscriptions = [], sagas = [], outbox = [] } = module;
  return {
    ...module,
    reactors: (context) =>
      (typeof reactors === 'function' ? reactors(context) : reactors).map((each) => ({
        ...each,
        react(event, more) {
          seen('reactor', event);
          return each.react(event, more);
        },
      })),
    subscriptions: (context) =>
      (typeof subscriptions === 'function' ? subscriptions(context) : subscriptions).map(
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
            due(name, view.data);
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

/** Says `started` once it is. */
export async function serveProduct(
  module: PlatformModule,
  { store, ...listen }: { readonly store: string; readonly host: string; readonly port: number },
): Promise<void> {
  const platform = await createPlatform({
    engines: { store },
    leaseMs: 1_000,
    dispatcher: {
      leaseMs: 2_000,
      timeoutMs: 1_500,
      tickIntervalMs: 50,
      schedule: { initialMs: 100, factor: 2, capMs: 5_000, jitterMs: 0 },
    },
    modules: [module],
  });
  await platform.start();
  await startApi(platform, listen);
  tellParent('started');
}
