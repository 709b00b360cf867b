// Runs the product in one process until the signal fires, for `millrace start` and `millrace dev`.

import { systemClock } from '../foundation/clock.ts';
import { whenAborted } from '../foundation/async/when-aborted.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { Platform } from '../platform/create-platform.ts';
import type { OperationsEvents } from '../platform/operations-events.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { exitCodes, type CommandContext, type Values } from './command.ts';
import { defined } from './options.ts';
import { packageVersion } from './package-version.ts';
import { printBanner, type ProductHooks } from './product-banner.ts';
import { startServers, type Product } from './product-servers.ts';
import { busNeed, readSettings, type productOptions, type Settings } from './product-settings.ts';

/** A failure in any step closes everything that the steps before have opened. */
export async function runProduct(
  context: CommandContext,
  values: Values<typeof productOptions>,
  hooks: ProductHooks = {},
): Promise<number> {
  const settings = await readSettings(context, values, hooks.store);
  await using opened = new AsyncDisposableStack();
  const inner = await openTelemetry(context, opened);
  const operations = await operationsOf(settings, inner);
  const telemetry = operations === undefined ? inner : { ...inner, observer: operations.observer };
  const platform = await startPlatform(settings, { telemetry, operations }, opened);
  const product: Product = { context, settings, telemetry, platform, opened };
  const urls = await startServers(product);
  if (operations !== undefined) {
    const about = { roles: platform.roles, version: packageVersion() };
    opened.use(await operations.start(await platform.engines.bus(), about));
  }
  await printBanner(product, urls, hooks);
  await whenAborted(context.signal).aborted;
  return shutDown(product, hooks);
}

/** Telemetry is opened first and closed last, so that it also reports the shutdown. */
async function openTelemetry(
  { env }: CommandContext,
  opened: AsyncDisposableStack,
): Promise<Telemetry> {
  const { createTelemetry } = await import('../telemetry/index.ts');
  return opened.use(await createTelemetry({ env, version: packageVersion() }));
}

async function operationsOf(
  { config }: Settings,
  { observer }: Telemetry,
): Promise<OperationsEvents | undefined> {
  if (config.operationsEvents !== true) return undefined;
  const { createOperationsEvents } = await import('../platform/operations-events.ts');
  return createOperationsEvents(observer, systemClock);
}

async function startPlatform(
  { config, roles, serves, shutdown, tenants }: Settings,
  {
    telemetry,
    operations,
  }: { readonly telemetry: Telemetry; readonly operations: OperationsEvents | undefined },
  opened: AsyncDisposableStack,
): Promise<Platform> {
  const { createPlatform } = await import('../platform/create-platform.ts');
  const { kurrentStoreOptions } = await import('../server/kurrent/kurrent-server.ts');
  const { platformCollectors } = await import('../telemetry/index.ts');
  const platform = opened.use(
    await createPlatform({
      ...config,
      modules: [
        ...(config.modules ?? []),
        ...(operations === undefined ? [] : [operations.module]),
      ],
      drainMs: shutdown.workMs,
      version: packageVersion(),
      tenants: [...(config.tenants ?? []), ...tenants],
      usesBus: serves.ntfy ? busNeed(config) : undefined,
      ...defined({ roles }),
      ...(serves.kurrent ? kurrentStoreOptions : {}),
      observer: telemetry.observer,
    }),
  );
  telemetry.collect(platformCollectors(platform));
  await platform.start();
  return platform;
}

async function shutDown(
  { context, settings, opened }: Product,
  { isJson }: ProductHooks,
): Promise<number> {
  const { stdout, stderr, paint } = context;
  const { totalMs } = settings.shutdown;
  const seconds = totalMs / 1_000;
  if (isJson !== true) {
    const text = `Stopping: running work has ${seconds} s to finish; a second signal ends it immediately.\n`;
    stdout.write(paint.dim(text));
  }
  let problem = `shutdown timed out after ${seconds} s; other processes take over when the leases expire`;
  try {
    const isDone = await withinTime(
      opened.disposeAsync().then(() => true),
      { ms: totalMs, late: () => false },
    );
    if (isDone) return exitCodes.ok;
  } catch (error) {
    problem = `shutdown failed: ${error instanceof Error ? error.message : String(error)}`;
  }
  stderr.write(`${paint.red('millrace:')} ${problem}\n`);
  return exitCodes.failed;
}
