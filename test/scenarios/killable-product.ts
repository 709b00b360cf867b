// The product with one module, which kills itself at a hop: earlier results are stored, and the next
// consumer has just started.

import { createPlatform, type PlatformModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { tellParent } from '../../src/testing/child-process.ts';

/** The consumer that is about to see the event; `published` follows the handler of the bus. */
type Hop = 'bus' | 'clock' | 'outbox' | 'published' | 'reactor';
type Seen = (hop: Hop, event: Pick<RecordedEvent, 'aggregate' | 'payload' | 'type'> & Flow) => void;
interface Flow {
  readonly correlationId?: string | undefined;
}

/** Returns the module with callbacks before each consumer, which can kill the process. */
export function killableModule(
  module: PlatformModule,
  seen: Seen,
  /** Called when the timer of a saga is due. */
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

/** Reports `started` when the product is running. */
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
