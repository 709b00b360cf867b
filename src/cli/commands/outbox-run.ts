// `millrace outbox run`: projectors and dispatcher of an outbox definition in one process.

import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MillraceError } from '../../foundation/error.ts';
import type { Logger } from '../../foundation/observer.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import type { OutboxDefinition, OutboxModule } from '../../platform/define-outbox.ts';
import type { OutboxSettings } from '../../platform/config/outbox-environment.ts';
import type { RunningOutbox } from '../../platform/run-standalone-outbox.ts';
import type { HttpServer, HttpServerOptions } from '../../server/http/http-server.ts';
import type { Metrics } from '../../telemetry/create-metrics.ts';
import { defineTextCommand, exitCodes, type CommandContext } from '../command.ts';
import { flag, nonNegativeInteger, option } from '../options.ts';
import { displayUrl, outboxOption, storeUrl } from '../stores.ts';

export const outboxRun = defineTextCommand({
  name: 'outbox run',
  summary: 'projects events into the outbox and sends due messages, until Ctrl-C',
  usage: '[--config <file>] [--drain] [--port N]',
  options: {
    ...outboxOption,
    config: option('file', 'outbox definition (default: outbox.config.ts)'),
    drain: flag(
      'stops when all events are projected and no message is due; fails if an event was dead-lettered',
    ),
    port: option('N', 'serves GET /metrics, /health/live and /health/ready (default: off)'),
    host: option('address', 'address of --port (default: 127.0.0.1)'),
    verbose: flag('logs every message instead of problems only'),
    json: flag('logs JSON lines'),
  },
  examples: [
    'millrace outbox run',
    'millrace outbox run --config services/payments/outbox.config.ts --json',
    'millrace outbox run --port 9464',
    'OUTBOX_CLAIM_BATCH_SIZE=500 millrace outbox run --drain',
  ],
  sections: [
    {
      title: 'Environment',
      rows: [
        ['ESDB_CONNECTION_STRING', 'event store, used if MILLRACE_STORE is not set'],
        ['ESDB_SUBSCRIPTION_PREFIX', 'event types to project: payment.,account.'],
        ['OUTBOX_CLAIM_BATCH_SIZE', 'messages per claim (default: 100)'],
        ['OUTBOX_MAX_ATTEMPTS', 'attempts before a message is dead (default: 10)'],
        ['OUTBOX_TICK_INTERVAL_MS', 'poll interval without a notification (default: 1000)'],
        ['OUTBOX_DEADLETTER_TOPIC', 'destination of dead messages: outbox.dead, webhook:dead'],
        ['WEBHOOK_TIMEOUT_MS', 'timeout of a webhook call (default: 5000)'],
        ['KAFKA_BROKERS, REDIS_HOST, REDIS_PORT', 'available to the outbox definition'],
      ],
    },
  ],
  async run(context) {
    const { values, stdout, signal, env, isTTY } = context;
    const { readOutboxEnvironment } = await import('../../platform/config/outbox-environment.ts');
    const { createLogger } = await import('../../telemetry/create-logger.ts');
    const { createMetrics } = await import('../../telemetry/create-metrics.ts');
    const { combineObservers } = await import('../../telemetry/create-telemetry.ts');
    const { startOutbox } = await import('../../platform/run-standalone-outbox.ts');
    const settings = readOutboxEnvironment(env);
    const definition = await loadDefinition(context, values.config, settings);
    const store = storeUrl(context, values.store ?? settings.store);
    const outbox = storeUrl(context, settings.outbox ?? store);
    using log = createLogger({
      stream: stdout,
      format: values.json === true ? 'json' : 'text',
      hasColours: isTTY && (env['NO_COLOR'] ?? '') === '',
      timestampKey: 'time',
      messageKey: 'message',
      level: values.verbose === true ? 'debug' : 'info',
    });
    const port = nonNegativeInteger('port', values.port);
    const metrics = port === undefined ? undefined : createMetrics();
    const observer = { log, ...definition.observer };
    await using running = await startOutbox(
      { ...definition, observer: combineObservers(metrics?.observer ?? {}, observer) },
      { settings, store, outbox, isProduction: env['NODE_ENV'] === 'production' },
    );
    await using server =
      metrics && (await serve(running, metrics, { port, host: values.host, log }));
    const { projectors = [], destinations } = definition;
    log.info(
      {
        store: projectors.length === 0 ? undefined : await displayUrl(context, store),
        outbox: await displayUrl(context, outbox),
        projectors: projectors.map((each) => each.name),
        destinations: Object.keys(destinations),
        batchSize: settings.batchSize,
        url: server?.url,
      },
      'outbox started',
    );
    const stopped = whenAborted(signal).aborted;
    if (values.drain === true) {
      await Promise.race([running.whenDrained(signal), stopped]);
    } else {
      await stopped;
    }
    const { deadLetteredEvents } = running;
    const isIncomplete = values.drain === true && deadLetteredEvents > 0;
    if (values.drain === true && !signal.aborted) {
      const counts = await running.ledger.counts();
      if (isIncomplete) {
        log.error(
          { deadLetteredEvents, ...counts },
          'outbox not drained: events were dead-lettered, see millrace dlq list',
        );
      } else log.info(counts, 'outbox drained');
    }
    log.info({}, 'outbox stopping');
    return isIncomplete ? exitCodes.failed : exitCodes.ok;
  },
});

async function serve(
  running: RunningOutbox,
  metrics: Metrics,
  { port, host, log }: Pick<HttpServerOptions, 'host' | 'port'> & { readonly log: Logger },
): Promise<HttpServer> {
  const { startHttpServer } = await import('../../server/http/http-server.ts');
  const { outboxRunRoutes } = await import('../../server/api/health-routes.ts');
  const { collectMetrics } = await import('../../telemetry/collect-metrics.ts');
  const { outboxCollectors } = await import('../../telemetry/collectors.ts');
  const collect = collectMetrics(metrics, outboxCollectors(running), { log });
  const routes = outboxRunRoutes(running, async () => {
    await collect();
    return metrics.expose();
  });
  return startHttpServer({
    routes,
    authenticate: async () => undefined,
    host,
    port,
    observer: { log },
  });
}

const configNames = ['ts', 'mts', 'js', 'mjs'].map((extension) => `outbox.config.${extension}`);

async function loadDefinition(
  { cwd }: Pick<CommandContext, 'cwd'>,
  given: string | undefined,
  settings: OutboxSettings,
): Promise<OutboxDefinition> {
  const paths = (given === undefined ? configNames : [given]).map((name) => resolve(cwd, name));
  const path = paths.find((each) => existsSync(each));
  if (path === undefined) {
    throw invalidConfig(
      given === undefined
        ? 'no outbox.config.ts in this folder: create one with millrace new outbox, or pass --config'
        : `file '${given}' does not exist: pass an existing file with --config`,
    );
  }
  const shown = relative(cwd, path);
  let definition: unknown;
  try {
    const exported = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
    const module = exported.default as OutboxModule | undefined;
    definition = typeof module === 'function' ? await module(settings) : module;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidConfig(`${shown} cannot be loaded: ${reason.split('\n')[0]}`, error);
  }
  if (isDefinition(definition)) return definition;
  throw invalidConfig(`${shown} must export defineOutbox({ destinations, … }) as its default`);
}

/** Checks the shape, since the file may use another copy of this package. */
function isDefinition(value: unknown): value is OutboxDefinition {
  return (
    typeof value === 'object' &&
    value !== null &&
    'destinations' in value &&
    typeof value.destinations === 'object' &&
    value.destinations !== null &&
    (!('projectors' in value) || value.projectors === undefined || Array.isArray(value.projectors))
  );
}

function invalidConfig(message: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { details: { field: 'config' }, cause });
}
