// A command: its name, options and help as data, and the function that runs it. Help, completion and
// docs/cli.md are generated from the same data.

import { parseArgs } from 'node:util';
import { closest } from '../foundation/closest.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Paint } from './terminal/paint.ts';
import { writeOut, type Output } from './terminal/write-out.ts';

export interface CommandContext {
  readonly args: readonly string[];
  readonly stdout: Output;
  readonly stderr: Output;
  /** Opened on the first call. */
  readonly stdin: () => AsyncIterable<string | Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly cwd: string;
  /** True if stdout is a terminal. */
  readonly isTTY: boolean;
  readonly paint: Paint;
}

interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly summary: string;
  /** The placeholder for the value in the help. */
  readonly value?: string;
}

export type Options = Readonly<Record<string, Option>>;

export interface Command {
  /** One word, or two: `stream read`. */
  readonly name: string;
  readonly summary: string;
  /** The command line without `millrace`. */
  readonly usage: string;
  readonly options: Options;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** More tables below the options in the help. */
  readonly sections?: readonly HelpSection[];
  /** Fixed words that may follow the name, for completion. */
  readonly words?: readonly string[];
  /** Resolves to the exit code. */
  readonly run: (context: CommandContext) => Promise<number>;
}

export interface HelpSection {
  readonly title: string;
  readonly rows: readonly (readonly [string, string])[];
}

export const exitCodes = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

type Parsed<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>;

export type Values<O extends Options> = Parsed<O>['values'];

/** The parsed arguments, and the command's name for error messages. */
type Input<O extends Options> = Parsed<O> & { readonly name: string };

interface CommandDefinition<O extends Options> extends Omit<Command, 'options' | 'run'> {
  readonly options: O;
  readonly run: (context: CommandContext, input: Input<O>) => Promise<number>;
}

/** A command that gets its arguments parsed, with the types that its options declare. */
export function defineCommand<const O extends Options>(definition: CommandDefinition<O>): Command {
  const { name, options, run } = definition;
  return {
    ...definition,
    run: async (context) => run(context, { name, ...readArgs(name, context.args, options) }),
  };
}

function readArgs<O extends Options>(name: string, args: readonly string[], options: O): Parsed<O> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw usage(argumentProblem(name, error.message, Object.keys(options)), { cause: error });
  }
}

function argumentProblem(command: string, message: string, known: readonly string[]): string {
  const unknown = /^Unknown option '(-{1,2}[^']*)'/.exec(message)?.[1];
  if (unknown === undefined) return `${command}: ${message.split('\n')[0] ?? message}`;
  const flags = known.map((option) => `--${option}`);
  return `${command} has no option ${didYouMean(unknown, flags)}`;
}

interface Arguments {
  readonly name: string;
  readonly positionals: readonly string[];
}

/** The only argument of a command; `what` says what it is, with an example. */
export function oneArgument({ name, positionals }: Arguments, what: string): string {
  const [argument, ...rest] = positionals;
  if (argument === undefined || argument === '' || rest.length > 0) {
    throw usage(`${name} takes one ${what}`);
  }
  return argument;
}

export function noArguments({ name, positionals }: Arguments): void {
  if (positionals.length > 0) throw usage(`${name} takes options only, not '${positionals[0]}'`);
}

export function usage(message: string, options: { readonly cause?: unknown } = {}): MillraceError {
  return new MillraceError('USAGE', message, options);
}

/** `'lnit': did you mean lint?`, or only the name if no known one is similar. */
export function didYouMean(typed: string, known: Iterable<string>): string {
  const near = closest(typed, known);
  return near === undefined ? `'${typed}'` : `'${typed}': did you mean ${near}?`;
}

/** Prints the result of a command: as one line of JSON with `--json`, otherwise as text. */
export function printResult(
  { stdout }: Pick<CommandContext, 'stdout'>,
  { json }: { readonly json?: boolean | undefined },
  result: { readonly json: unknown; readonly text: string },
): number {
  stdout.write(json === true ? `${JSON.stringify(result.json)}\n` : `${result.text}\n`);
  return exitCodes.ok;
}

/** Prints a page of a list: a line of JSON per item with `--json`, otherwise a line of text and how to get the next page. */
export async function printPage<Item>(
  { stdout, stderr, signal }: Pick<CommandContext, 'signal' | 'stderr' | 'stdout'>,
  { json }: { readonly json?: boolean | undefined },
  page: {
    readonly items: readonly Item[];
    readonly line: (item: Item) => string;
    /** Printed if the page has no items. */
    readonly none: string;
    /** The value of `--after` for the next page, if there may be one. */
    readonly next: string | undefined;
  },
): Promise<number> {
  const { items, line, none, next } = page;
  const lines = items.map((item) => (json === true ? `${JSON.stringify(item)}\n` : line(item)));
  await writeOut(stdout, lines.join(''), signal);
  if (json === true) return exitCodes.ok;
  if (items.length === 0) stderr.write(`${none}\n`);
  if (next !== undefined) stderr.write(`next page: --after ${next}\n`);
  return exitCodes.ok;
}
