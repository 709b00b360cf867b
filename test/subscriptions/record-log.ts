import type { Logger } from '../../src/foundation/observer.ts';

export interface RecordedLog extends Logger {
  /** For example `warn Redis connection lost`. */
  readonly lines: readonly string[];
}

/** Records the log messages without their fields. */
export function recordLog(): RecordedLog {
  const lines: string[] = [];
  const at =
    (level: string) =>
    (_fields: object, message: string): void =>
      void lines.push(`${level} ${message}`);
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
