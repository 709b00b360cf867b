// Adapts Nest's logger to the telemetry port: a constant message and fields.

import { Logger as NestLogger, type LoggerService } from '@nestjs/common';
import type { Logger, Observer } from '../foundation/observer.ts';

/** The logger of the application documents: fields first; the message may be the field `msg`. */
export interface ILogger extends Logger {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
}

/**
 * Writes to the Nest logger of the application, with `correlationId`, `tenantId`, `userId`, `source`, `operation` and
 * `phase` as separate fields.
 *
 * @example
 * import { Logger } from '@nestjs/common';
 * import { nestLogger } from 'millrace/nest';
 *
 * const logger = nestLogger(new Logger('Payments'));
 * logger.warn({ correlationId: 'c1', tenantId: 'core', operation: 'REFUND', phase: 'ERROR' }, 'refund rejected');
 */
export function nestLogger(logger: LoggerService = new NestLogger('Millrace')): ILogger {
  const writing =
    (level: 'debug' | 'log' | 'warn' | 'error') =>
    (fields: object, message?: string): void => {
      const { msg, ...rest } = { ...fields } as Readonly<Record<string, unknown>>;
      const text = message ?? (typeof msg === 'string' ? msg : 'millrace');
      logger[level]?.(text, toFields(rest));
    };
  return {
    debug: writing('debug'),
    info: writing('log'),
    warn: writing('warn'),
    error: writing('error'),
  };
}

/**
 * An observer that only logs, with Nest's logger; add metrics and traces as needed. It omits debug lines (several per
 * message) unless `debug` is set, because Nest writes all levels by default.
 *
 * @example
 * import { MillraceModule, nestObserver } from 'millrace/nest';
 *
 * const counts = new Map<string, number>();
 * const observer = {
 *   ...nestObserver(),
 *   count: (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1),
 * };
 * const millrace = MillraceModule.forRoot({ store: 'memory:', observer });
 */
export function nestObserver(
  logger?: LoggerService,
  options: { readonly debug?: boolean } = {},
): Observer & { readonly log: ILogger } {
  const log = nestLogger(logger);
  return { log: options.debug === true ? log : { ...log, debug: () => undefined } };
}

/** Field names of subscriptions, and their names in the documents. */
const documentedNames: Readonly<Record<string, string>> = {
  tenant: 'tenantId',
  user: 'userId',
  handler: 'source',
};

function toFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const named: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const documented = documentedNames[name];
    const isTaken = documented === undefined || documented in fields;
    named[isTaken ? name : documented] = value instanceof Error ? errorFields(value) : value;
  }
  return { source: 'millrace', ...named };
}

/** JSON loggers would write an Error as an empty object. */
function errorFields(error: Error): object {
  const { name, message, stack } = error;
  const code = 'code' in error ? { code: error.code } : {};
  return { name, message, ...code, stack };
}
