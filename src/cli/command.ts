// What a command of the command line is: a row of a table, from which help and completion come too.

import { parseArgs } from 'node:util';
import { closest } from '../foundation/closest.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Paint } from './paint.ts';

export interface Output {
  /** False: it has more to write than it can, until it drains. */
  write(text: string): unknown;
  once?(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
}

export interface CommandContext {
  readonly args: readonly string[];
  readonly stdout: Output;
  readonly stderr: Output;
  /** Opened when it is asked for. */
  readonly stdin: () => AsyncIterable<string | Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly cwd: string;
  /** Somebody watches: stdout is a terminal. */
  readonly isTTY: boolean;
  readonly paint: Paint;
}

interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly summary: string;
  /** What the help calls the option's value. */
  readonly value?: string;
}

export type Options = Readonly<Record<string, Option>>;

export interface Command {
  /** One word, or two: `stream read`. */
  readonly name: string;
  readonly summary: string;
  /** Behind the program's name. */
  readonly usage: string;
  readonly options: Options;
  /** Whole command lines. */
  readonly examples: readonly string[];
  /** More to know, below the options in the help. */
  readonly sections?: readonly {
    readonly title: string;
    readonly rows: readonly (readonly [string, string])[];
  }[];
  /** What may follow the name, where that is a fixed word. */
  readonly words?: readonly string[];
  /** Resolves to the exit code. */
  readonly run: (context: CommandContext) => Promise<number>;
}

export const exitCodes = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

type Parsed<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>;

/** Reads a command's arguments; what it does not know is `USAGE`, with the nearest that it does. */
export function readArgs<const O extends Options>(
  { name, args }: { readonly name: string; readonly args: readonly string[] },
  options: O,
): Parsed<O> {
  try {
    return parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw usage(argumentProblem(name, error.message, Object.keys(options)), { cause: error });
  }
}

export function usage(message: string, options: { readonly cause?: unknown } = {}): MillraceError {
  return new MillraceError('USAGE', message, options);
}

/** `'lnit': did you mean lint?`, or just the name where nothing is near. */
export function didYouMean(typed: string, known: Iterable<string>): string {
  const near = closest(typed, known);
  return near === undefined ? `'${typed}'` : `'${typed}': did you mean ${near}?`;
}

function argumentProblem(command: string, message: string, known: readonly string[]): string {
  const unknown = /^Unknown option '(-{1,2}[^']*)'/.exec(message)?.[1];
  if (unknown === undefined) return `${command}: ${message.split('\n')[0] ?? message}`;
  const flags = known.map((option) => `--${option}`);
  return `${command} has no option ${didYouMean(unknown, flags)}`;
}
