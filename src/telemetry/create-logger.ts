// The log of the process, written by pino: JSON lines for collectors, text for a terminal. Logging never throws.

import { createRequire } from 'node:module';
import { pino } from 'pino';
import type * as pinoPretty from 'pino-pretty';
import { systemClock, type Clock } from '../foundation/clock.ts';
import type { Logger } from '../foundation/observer.ts';
import { createLogValues, type LogValue, type LogValueLimits } from './log-value.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** The part of a Node stream that the logger uses; `process.stderr` fits. */
export interface LogStream {
  readonly writableLength?: number | undefined;
  readonly writable?: boolean | undefined;
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
  on?(event: 'drain' | 'error', listener: () => void): unknown;
  off?(event: 'drain' | 'error', listener: () => void): unknown;
}

export interface LoggerOptions {
  /** Default: `json`. */
  readonly format?: 'json' | 'text' | undefined;
  /** Lines below this level are not written. Default: `info`. */
  readonly level?: LogLevel | 'silent' | undefined;
  /** Default: standard error, written synchronously, so a kill loses no line. */
  readonly stream?: LogStream | undefined;
  /** Part of every JSON line: `app`, `env`, `version`. */
  readonly fields?: object | undefined;
  /** Names of more fields to leave out. */
  readonly redact?: readonly string[] | undefined;
  /** The names of these fields in a JSON line. Default: `timestamp` and `msg`. */
  readonly timestampKey?: string | undefined;
  readonly messageKey?: string | undefined;
  /** Default: true on a terminal. */
  readonly hasColours?: boolean | undefined;
  readonly clock?: Clock | undefined;
  readonly lineBytesMax?: number | undefined;
  readonly bufferBytesMax?: number | undefined;
  readonly onDropped?: (() => void) | undefined;
}

export const logLimits = {
  /** Most log collectors split longer lines. */
  lineBytesMax: 16_384,
  /** The buffer limit for a slow reader; further lines are dropped. */
  bufferBytesMax: 4_194_304,
} as const;

const fullLimits: LogValueLimits = {
  depthMax: 8,
  entriesMax: 64,
  textCharsMax: 4_096,
  nodesMax: 1_000,
};
/** The limits for a line that is too long with the full limits. */
const shortLimits: LogValueLimits = {
  depthMax: 3,
  entriesMax: 24,
  textCharsMax: 200,
  nodesMax: 100,
};
/** The fields that identify a line; only they remain if the short limits do not suffice. */
const essentialFields = [
  'correlationId',
  'tenantId',
  'tenant',
  'userId',
  'source',
  'context',
  'operation',
  'operationId',
  'phase',
  'eventId',
];
/** The first of these fields in a line names the component that logs. */
const componentFields = ['source', 'sub', 'handler', 'saga', 'group', 'destination', 'collector'];
/** The ids of a request, an admin action and a message. */
const operationFields = ['requestId', 'auditId', 'outboxId'];

type Fields = Readonly<Record<string, LogValue>>;

/**
 * Writes one line per call, with `timestamp`, `level`, `msg` and the given fields. Secrets and personal data are
 * left out by the names of their fields.
 *
 * @example
 * import { createLogger } from 'millrace/telemetry';
 *
 * using log = createLogger({ fields: { app: 'shop', env: 'test' } });
 * log.warn({ correlationId: 'c-1', tenantId: 'core', password: 'hush' }, 'delivery failed');
 * // {…,"app":"shop","env":"test","correlationId":"c-1","tenantId":"core","password":"[redacted]",…}
 */
export function createLogger(options: LoggerOptions = {}): Logger & Disposable {
  const { clock = systemClock, lineBytesMax = logLimits.lineBytesMax } = options;
  const { messageKey = 'msg', timestampKey = 'timestamp' } = options;
  const isText = options.format === 'text';
  const toLogValue = createLogValues(options);
  const destination = openDestination(options, reportDropped);

  function fieldsOf(given: unknown): Fields {
    try {
      const value = toLogValue(given, fullLimits);
      const hasFields = typeof value === 'object' && value !== null && !Array.isArray(value);
      // An error that is logged directly, or a value without fields.
      if (given instanceof Error || !hasFields) return { err: value };
      return value as Fields;
    } catch (error) {
      return { unreadable: error instanceof Error ? error.message : 'unknown' };
    }
  }

  function lineFields(given: unknown): Fields {
    const fields = fieldsOf(given);
    const all = isText ? fields : { ...options.fields, ...fields, ...standardFields(fields) };
    // These names belong to the line itself.
    const { level: _level, [timestampKey]: _time, [messageKey]: _message, ...own } = all;
    return own;
  }

  /** A JSON line that is too long, with fewer and shorter fields. */
  function shorten(line: string): string {
    const {
      [timestampKey]: time,
      level,
      [messageKey]: message,
      ...rest
    } = JSON.parse(line) as Fields;
    const head = { level, [timestampKey]: time };
    const tail = { truncated: true, [messageKey]: message };
    const fields = toLogValue(rest, shortLimits) as Fields;
    const short = `${JSON.stringify({ ...head, ...fields, ...tail })}\n`;
    if (Buffer.byteLength(short) <= lineBytesMax) return short;
    const essential = essentialFields.flatMap((key) => (key in fields ? [[key, fields[key]]] : []));
    return `${JSON.stringify({ ...head, ...Object.fromEntries(essential), ...tail })}\n`;
  }

  const prettify = isText
    ? loadPrettyFactory()({
        colorize: options.hasColours ?? (options.stream ?? process.stderr).isTTY === true,
        singleLine: true,
        timestampKey,
        messageKey,
      })
    : undefined;

  const log = pino(
    {
      level: options.level ?? 'info',
      base: null,
      messageKey,
      timestamp: () => `,"${timestampKey}":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      // `lineFields` has converted errors already.
      serializers: { err: (err: unknown) => err },
      hooks: {
        streamWrite(line) {
          if (prettify !== undefined) return cut(prettify(visible(line.trimEnd())), lineBytesMax);
          return Buffer.byteLength(line) <= lineBytesMax ? line : shorten(line);
        },
      },
    },
    destination,
  );

  function reportDropped(count: number): void {
    log.warn({ dropped: count }, 'log lines dropped: the reader is too slow');
  }

  const at =
    (level: LogLevel) =>
    (fields: object, message: unknown): void => {
      if (!log.isLevelEnabled(level)) return;
      const text = String(message).slice(0, 1_000);
      log[level](lineFields(fields), isText ? visible(text) : text);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    [Symbol.dispose]: () => destination[Symbol.dispose](),
  };
}

interface Destination extends Disposable {
  write(line: string): void;
}

/** Drops lines instead of buffering without bound, and reports their number when there is room again. */
function openDestination(
  options: LoggerOptions,
  reportDropped: (count: number) => void,
): Destination {
  const { bufferBytesMax = logLimits.bufferBytesMax, onDropped } = options;
  const stream = options.stream ?? standardError(bufferBytesMax, drop);
  let dropped = 0;

  function drop(): void {
    dropped += 1;
    onDropped?.();
  }

  function report(): void {
    if (dropped === 0 || stream.writable === false) return;
    const count = dropped;
    dropped = 0;
    reportDropped(count);
  }

  // Without a listener, a reader that closes the pipe would crash the process.
  const onError = (): void => undefined;
  stream.on?.('error', onError);
  stream.on?.('drain', report);
  return {
    write(line) {
      const isFull = (stream.writableLength ?? 0) + line.length > bufferBytesMax;
      if (isFull || stream.writable === false) {
        drop();
        return;
      }
      report();
      try {
        stream.write(line);
      } catch {
        // The log itself failed, so the error cannot be reported.
        drop();
      }
    },
    [Symbol.dispose]() {
      stream.off?.('error', onError);
      stream.off?.('drain', report);
    },
  };
}

/** Writes synchronously: a worker thread or a buffer would lose lines when the process is killed. */
function standardError(maxLength: number, onDrop: () => void): LogStream {
  const stream = pino.destination({ dest: 2, sync: true, maxLength });
  stream.on('drop', onDrop);
  return stream;
}

/** Loads the formatter for text only: a process that logs JSON starts 50 ms sooner without it. */
function loadPrettyFactory(): typeof pinoPretty.prettyFactory {
  const load = createRequire(import.meta.url);
  return (load('pino-pretty') as typeof pinoPretty).prettyFactory;
}

/** The fields of the naming document, derived from ours: `context.component` and `operationId`. */
function standardFields(fields: Fields): Fields {
  const firstText = (names: readonly string[]): LogValue | undefined =>
    names.map((name) => fields[name]).find((value) => typeof value === 'string');
  const component = firstText(componentFields);
  const operationId = firstText(operationFields);
  return {
    ...(component === undefined || 'context' in fields ? {} : { context: { component } }),
    ...(operationId === undefined || 'operationId' in fields ? {} : { operationId }),
  };
}

/** Removes control characters, which could control a terminal or forge a line. */
function visible(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�');
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…\n` : text;
}
