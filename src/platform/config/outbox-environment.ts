// The outbox settings of the environment: the variables of the outbox document, overridden by the `MILLRACE_*` variables.

import { urlParts, type EngineName } from '../../contracts/engine-url.ts';
import { MillraceError } from '../../foundation/error.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';

export interface OutboxSettings {
  /** `MILLRACE_STORE`, else `ESDB_CONNECTION_STRING`. Undefined: the embedded store. */
  readonly store: string | undefined;
  /** `MILLRACE_OUTBOX`. Undefined: the database of the store. */
  readonly outbox: string | undefined;
  /** `MILLRACE_QUEUE`, else Redis at `REDIS_HOST` and `REDIS_PORT`. Undefined: no queue. */
  readonly queue: string | undefined;
  /** `ESDB_SUBSCRIPTION_PREFIX`, comma-separated: the events of projectors without a filter. */
  readonly typePrefixes: readonly string[];
  /** `OUTBOX_CLAIM_BATCH_SIZE`. Default: 100. */
  readonly batchSize: number;
  /** `OUTBOX_MAX_ATTEMPTS`, for messages without `maxAttempts`. Default: 10. */
  readonly maxAttempts: number;
  /** `OUTBOX_TICK_INTERVAL_MS`. Default: 1 s. */
  readonly tickIntervalMs: number;
  /** `OUTBOX_DEADLETTER_TOPIC`: a Kafka topic, or an integration type such as `webhook:dead`. */
  readonly deadLetterTopic: string | undefined;
  /** `KAFKA_BROKERS`, comma-separated. */
  readonly kafkaBrokers: readonly string[];
  /** `WEBHOOK_TIMEOUT_MS`. Default: 5 s. */
  readonly webhookTimeoutMs: number;
}

export const outboxEnvironmentLimits = {
  tickIntervalMsMax: 3_600_000,
  webhookTimeoutMsDefault: 5_000,
  /** Below half a lease, which is the time limit of the dispatcher. */
  webhookTimeoutMsMax: 25_000,
  redisPortDefault: 6_379,
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings of the outbox; reports all invalid variables in one `CONFIG_INVALID`.
 * `MILLRACE_STORE`, `MILLRACE_OUTBOX` and `MILLRACE_QUEUE` override the names of the document.
 *
 * @example
 * import { readOutboxEnvironment } from 'millrace/platform';
 *
 * const { batchSize, kafkaBrokers } = readOutboxEnvironment({
 *   OUTBOX_CLAIM_BATCH_SIZE: '50',
 *   KAFKA_BROKERS: 'broker1:9092,broker2:9092',
 * });
 * console.log(batchSize, kafkaBrokers); // 50 ['broker1:9092', 'broker2:9092']
 */
export function readOutboxEnvironment(env: Environment): OutboxSettings {
  const read = createReader(env);
  const settings: OutboxSettings = {
    store: read.storeUrl('MILLRACE_STORE') ?? read.storeUrl('ESDB_CONNECTION_STRING', 'kurrentdb'),
    outbox: read.storeUrl('MILLRACE_OUTBOX'),
    queue: read.text('MILLRACE_QUEUE') ?? redisUrl(read),
    typePrefixes: read.list('ESDB_SUBSCRIPTION_PREFIX'),
    batchSize: read.wholeNumber('OUTBOX_CLAIM_BATCH_SIZE', {
      max: outboxLimits.claimBatchMax,
      otherwise: outboxLimits.claimBatchDefault,
    }),
    maxAttempts: read.wholeNumber('OUTBOX_MAX_ATTEMPTS', {
      max: outboxLimits.maxAttemptsMax,
      otherwise: outboxLimits.maxAttemptsDefault,
    }),
    tickIntervalMs: read.wholeNumber('OUTBOX_TICK_INTERVAL_MS', {
      max: outboxEnvironmentLimits.tickIntervalMsMax,
      otherwise: outboxLimits.tickIntervalMsDefault,
    }),
    deadLetterTopic: read.matching(
      'OUTBOX_DEADLETTER_TOPIC',
      /^[\w.:-]{1,100}$/,
      'a topic, such as outbox.dead',
    ),
    kafkaBrokers: read.list('KAFKA_BROKERS', /^[^\s/@]+:\d{1,5}$/, 'host:port,host:port'),
    webhookTimeoutMs: read.wholeNumber('WEBHOOK_TIMEOUT_MS', {
      max: outboxEnvironmentLimits.webhookTimeoutMsMax,
      otherwise: outboxEnvironmentLimits.webhookTimeoutMsDefault,
    }),
  };
  read.finish();
  return settings;
}

type Reader = ReturnType<typeof createReader>;

/** Collects all problems, so that they can be fixed together. */
function createReader(env: Environment) {
  const problems: { readonly field: string; readonly problem: string }[] = [];
  const wrong = (field: string, problem: string): undefined =>
    void problems.push({ field, problem: `${field} ${problem}` });

  /** An empty variable counts as unset, as in compose files and shells. */
  const text = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };

  const matching = (name: string, shape: RegExp, looks: string): string | undefined => {
    const value = text(name);
    if (value === undefined || shape.test(value)) return value;
    return wrong(name, `looks like ${looks}, not '${value}'`);
  };

  return {
    text,
    matching,
    wholeNumber(
      name: string,
      { max, otherwise }: { readonly max: number; readonly otherwise: number },
    ): number {
      const value = text(name);
      if (value === undefined) return otherwise;
      const number = /^\d{1,15}$/.test(value) ? Number(value) : 0;
      if (number < 1 || number > max) {
        wrong(name, `must be an integer from 1 to ${max}, not '${value}'`);
      }
      return number;
    },
    list(name: string, shape?: RegExp, looks = ''): readonly string[] {
      const parts = (text(name) ?? '').split(',').map((part) => part.trim());
      const given = parts.filter((part) => part !== '');
      if (shape !== undefined && !given.every((part) => shape.test(part))) {
        wrong(name, `looks like ${looks}, not '${given.join(',')}'`);
      }
      return given;
    },
    storeUrl(name: string, engine?: EngineName): string | undefined {
      const value = text(name);
      try {
        if (value !== undefined) urlParts(value, name, engine);
        return value;
      } catch (error) {
        problems.push({ field: name, problem: (error as Error).message });
        return undefined;
      }
    },
    finish(): void {
      if (problems.length === 0) return;
      throw new MillraceError('CONFIG_INVALID', problems.map((each) => each.problem).join('; '), {
        details: { fields: problems.map(({ field }) => field) },
      });
    },
  };
}

function redisUrl(read: Reader): string | undefined {
  const host = read.matching('REDIS_HOST', /^[^\s/@?#]+$/, 'a host, such as localhost');
  const isSet = host !== undefined || read.text('REDIS_PORT') !== undefined;
  const port = read.wholeNumber('REDIS_PORT', {
    max: 65_535,
    otherwise: outboxEnvironmentLimits.redisPortDefault,
  });
  if (!isSet) return undefined;
  const { length } = host?.match(/:/g) ?? [];
  const shown = length > 1 && !host?.startsWith('[') ? `[${host}]` : (host ?? 'localhost');
  return `redis://${shown}:${port}`;
}
