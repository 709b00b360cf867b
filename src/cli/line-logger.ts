// Logs of a process that runs until it is stopped: a line each, for people or as JSON.

import type { Logger } from '../foundation/observer.ts';
import type { Output } from './terminal/write-out.ts';
import type { Paint } from './terminal/paint.ts';

const colours = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' } as const;
const levels = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof levels)[number];

export interface LineLoggerOptions {
  readonly output: Output;
  readonly paint: Paint;
  readonly isJson: boolean;
  /** The lowest that is written. */
  readonly level: Level;
}

export function createLineLogger({ output, paint, isJson, level }: LineLoggerOptions): Logger {
  const write =
    (each: Level) =>
    (fields: object, message: string): void => {
      if (levels.indexOf(each) < levels.indexOf(level)) return;
      const time = new Date().toISOString();
      const known = Object.entries(fields).filter(([, value]) => value !== undefined);
      const shown = known.map(([name, value]) => [name, plain(value)] as const);
      output.write(
        isJson
          ? `${JSON.stringify({ time, level: each, message, ...Object.fromEntries(shown) })}\n`
          : `${[
              paint.dim(time),
              paint[colours[each]](each.toUpperCase()),
              message,
              ...shown.map(([name, value]) => `${paint.dim(`${name}=`)}${inLine(value)}`),
            ].join(' ')}\n`,
      );
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** Errors have nothing that JSON would show. */
function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code = 'code' in value && typeof value.code === 'string' ? `${value.code}: ` : '';
  return `${code}${value.message}`;
}

function inLine(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value)
    ? value
    : (JSON.stringify(value) ?? '');
}
