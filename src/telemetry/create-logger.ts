// The log of the process: JSON lines for whoever collects them, text on a terminal. It never throws, and
// lets lines go rather than keep them all for a reader that is too slow.

import { systemClock, type Clock } from '../foundation/clock.ts';
import type { Logger } from '../foundation/observer.ts';
import { formatJson, formatText, logLimits, type LogLevel } from './format-log.ts';
import { createRedaction } from './redact.ts';

/** What a Node stream has; `process.stderr` fits. */
export interface LogStream {
  readonly writableLength: number;
  readonly writable: boolean;
  readonly isTTY?: boolean | undefined;
  write(text: string): boolean;
  on(event: 'drain' | 'error', listener: () => void): unknown;
  off(event: 'drain' | 'error', listener: () => void): unknown;
}

export interface LoggerOptions {
  /** Default: `json`. */
  readonly format?: 'json' | 'text';
  /** Lines below it are not written. Default: `info`. */
  readonly level?: LogLevel | 'silent';
  /** Default: `process.stderr`. */
  readonly stream?: LogStream;
  /** With every line of JSON: `app`, `env`, `version`. */
  readonly fields?: object;
  /** Names of further fields that are left out. */
  readonly redact?: readonly string[];
  /** Default: on a terminal. */
  readonly hasColours?: boolean;
  readonly clock?: Clock;
  readonly lineBytesMax?: number;
  readonly bufferBytesMax?: number;
  readonly onDropped?: () => void;
}

const order: Readonly<Record<LogLevel | 'silent', number>> = {
  debug: 0,
  info: 1,
  warn: 2,
  error: 3,
  silent: 4,
};

/**
 * Writes what is logged, one line each, with `timestamp`, `level` and `msg` beside the fields.
 * Secrets and personal data are left out by the names of their fields.
 *
 * @example
 * import { createLogger } from 'millrace/telemetry';
 *
 * using log = createLogger({ fields: { app: 'shop', env: 'test' } });
 * log.warn({ correlationId: 'c-1', tenantId: 'core', password: 'hush' }, 'delivery failed');
 * // {"app":"shop","env":"test","correlationId":"c-1","tenantId":"core","password":"[redacted]",…}
 */
export function createLogger(options: LoggerOptions = {}): Logger & Disposable {
  const { clock = systemClock, onDropped } = options;
  const stream: LogStream = options.stream ?? process.stderr;
  const level = order[options.level ?? 'info'];
  const bufferBytesMax = options.bufferBytesMax ?? logLimits.bufferBytesMax;
  const formatting = {
    redaction: createRedaction(options.redact),
    common: options.fields ?? {},
    lineBytesMax: options.lineBytesMax ?? logLimits.lineBytesMax,
    hasColours: options.hasColours ?? stream.isTTY === true,
  };
  const format = options.format === 'text' ? formatText : formatJson;
  let dropped = 0;

  function lineOf(at: LogLevel, fields: object, msg: string): string {
    const timestamp = new Date(clock.now()).toISOString();
    try {
      return format({ timestamp, level: at, msg, fields }, formatting);
    } catch (error) {
      // A line of which only this is left still says that something was to be told.
      const why = error instanceof Error ? error.message : 'unknown';
      return `${JSON.stringify({ unreadable: why, timestamp, level: at, msg })}\n`;
    }
  }

  function write(line: string): void {
    const isFull = stream.writableLength + line.length > bufferBytesMax;
    if (isFull || !stream.writable) {
      dropped += 1;
      onDropped?.();
      return;
    }
    tellDropped();
    put(line);
  }

  function tellDropped(): void {
    if (dropped === 0 || !stream.writable) return;
    const count = dropped;
    dropped = 0;
    put(lineOf('warn', { dropped: count }, 'log lines were dropped: the reader is too slow'));
  }

  function put(line: string): void {
    try {
      stream.write(line);
    } catch {
      // Nowhere left to tell it but here.
      dropped += 1;
      onDropped?.();
    }
  }

  // A reader that went away must not end the process.
  const onError = (): void => undefined;
  stream.on('error', onError);
  stream.on('drain', tellDropped);
  const at =
    (name: LogLevel) =>
    (fields: object, message: string): void => {
      if (order[name] >= level) write(lineOf(name, fields, message));
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    [Symbol.dispose]() {
      stream.off('error', onError);
      stream.off('drain', tellDropped);
    },
  };
}
