// `millrace outbox run`: projectors and dispatcher in one process, until a stop signal.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { loadOutboxModule } from './outbox-module.ts';
import { outboxSections, shownStore, storeOption, storeUrl } from './store-option.ts';
import { whenAborted } from './when-aborted.ts';

const name = 'outbox run';
const options = {
  ...storeOption,
  config: { type: 'string', value: 'file', summary: 'the outbox to run (outbox.config.ts)' },
  drain: { type: 'boolean', summary: 'ends when every event is projected and no message is due' },
  verbose: { type: 'boolean', summary: 'logs every message, not only failures' },
  json: { type: 'boolean', summary: 'logs one JSON object per line' },
} as const;

export const outboxRunCommand: Command = {
  name,
  summary: 'projects events into the outbox and sends due messages, until Ctrl-C',
  usage: `${name} [--config <file>] [--drain]`,
  options,
  examples: [
    `millrace ${name}`,
    `millrace ${name} --config services/payments/outbox.config.ts --json`,
    `OUTBOX_CLAIM_BATCH_SIZE=500 millrace ${name} --drain`,
  ],
  sections: [
    ...outboxSections,
    {
      title: 'Environment',
      rows: [
        ['ESDB_CONNECTION_STRING', 'the event store if MILLRACE_STORE is not set'],
        ['ESDB_SUBSCRIPTION_PREFIX', 'event types to project: payment.,account.'],
        ['OUTBOX_CLAIM_BATCH_SIZE', 'messages claimed at once (100)'],
        ['OUTBOX_MAX_ATTEMPTS', 'attempts before a message is dead (10)'],
        ['OUTBOX_TICK_INTERVAL_MS', 'how often it polls without a notification (1000)'],
        ['OUTBOX_DEADLETTER_TOPIC', 'where dead messages are reported: outbox.dead, webhook:dead'],
        ['WEBHOOK_TIMEOUT_MS', 'timeout of a webhook (5000)'],
        ['KAFKA_BROKERS, REDIS_HOST, REDIS_PORT', 'for the config to use'],
      ],
    },
  ],
  async run(context) {
    const { stdout, signal, env, isTTY } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes options only, not '${positionals[0]}'`);
    const { createLogger } = await import('../telemetry/create-logger.ts');
    const { readOutboxEnvironment } = await import('../platform/outbox-environment.ts');
    const { startOutbox } = await import('../platform/start-outbox.ts');
    const settings = readOutboxEnvironment(env);
    const definition = await loadOutboxModule(context, values.config, settings);
    const store = storeUrl(context, values.store ?? settings.store);
    const outbox = storeUrl(context, settings.outbox ?? store);
    using log = createLogger({
      stream: stdout,
      format: values.json === true ? 'json' : 'text',
      level: values.verbose === true ? 'debug' : 'info',
      hasColours: isTTY && (env['NO_COLOR'] ?? '') === '',
      timestampKey: 'time',
      messageKey: 'message',
    });
    await using running = await startOutbox(definition, {
      settings,
      store,
      outbox,
      observer: { log },
    });
    const { projectors = [], destinations } = definition;
    log.info(
      {
        ...(projectors.length === 0 ? {} : { store: await shownStore(context, store) }),
        outbox: await shownStore(context, outbox),
        projectors: projectors.map((each) => each.name),
        destinations: Object.keys(destinations),
        batchSize: settings.batchSize,
      },
      'the outbox runs',
    );
    const stopped = whenAborted(signal);
    if (values.drain === true) {
      await Promise.race([running.whenDrained(signal), stopped]);
      if (!signal.aborted) log.info(await running.ledger.counts(), 'the outbox is drained');
    } else {
      await stopped;
    }
    log.info({}, 'the outbox stops');
    return exitCodes.ok;
  },
};
