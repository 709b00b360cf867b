// `millrace outbox run`: projectors and dispatcher in one process, until it is told to stop.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { createLineLogger } from './line-logger.ts';
import { loadOutboxModule } from './outbox-module.ts';
import { outboxSections, shownStore, storeOption, storeUrl } from './store-option.ts';
import { whenAborted } from './when-aborted.ts';

const name = 'outbox run';
const options = {
  ...storeOption,
  config: { type: 'string', value: 'file', summary: 'what it runs (outbox.config.ts)' },
  drain: { type: 'boolean', summary: 'ends when all is projected and nothing is due' },
  verbose: { type: 'boolean', summary: 'logs every message, not only what went wrong' },
  json: { type: 'boolean', summary: 'logs JSON, a line each' },
} as const;

export const outboxRunCommand: Command = {
  name,
  summary: 'projects events into the outbox and sends what is due, until Ctrl-C',
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
        ['ESDB_CONNECTION_STRING', 'the event store, where MILLRACE_STORE is not set'],
        ['ESDB_SUBSCRIPTION_PREFIX', 'event types to project: payment.,account.'],
        ['OUTBOX_CLAIM_BATCH_SIZE', 'messages claimed at once (100)'],
        ['OUTBOX_MAX_ATTEMPTS', 'attempts before a message is dead (10)'],
        ['OUTBOX_TICK_INTERVAL_MS', 'how often it looks without being told (1000)'],
        ['OUTBOX_DEADLETTER_TOPIC', 'where dead messages are told of: outbox.dead, webhook:dead'],
        ['WEBHOOK_TIMEOUT_MS', 'how long a webhook may take (5000)'],
        ['KAFKA_BROKERS, REDIS_HOST, REDIS_PORT', 'for what the config makes of them'],
      ],
    },
  ],
  async run(context) {
    const { stdout, paint, signal, env } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    if (positionals.length > 0) throw usage(`${name} takes options only, not '${positionals[0]}'`);
    const { readOutboxEnvironment } = await import('../platform/config/outbox-environment.ts');
    const { startOutbox } = await import('../platform/start-outbox.ts');
    const settings = readOutboxEnvironment(env);
    const definition = await loadOutboxModule(context, values.config, settings);
    const store = storeUrl(context, values.store ?? settings.store);
    const outbox = storeUrl(context, settings.outbox ?? store);
    const log = createLineLogger({
      output: stdout,
      paint,
      isJson: values.json === true,
      level: values.verbose === true ? 'debug' : 'info',
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
