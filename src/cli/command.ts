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
  /** A table of the option's values, below the options in the help. */
  readonly section?: HelpSection;
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

/** The context of a command with its parsed arguments. */
type Invocation<O extends Options, A> = CommandContext &
  Parsed<O> & {
    /** The command's name, for error messages. */
    readonly name: string;
    readonly argument: A extends string ? string : undefined;
  };

interface CommandDefinition<O extends Options, A extends string | undefined> extends Omit<
  Command,
  'options' | 'run' | 'usage'
> {
  /** The part of the command line after the name, for the help. */
  readonly usage?: string;
  readonly options: O;
  /** Describes the only argument, with an example. A command without it takes options only. */
  readonly argument?: A;
  /** The command reads `positionals` itself. */
  readonly hasArguments?: boolean;
  readonly run: (invocation: Invocation<O, A>) => Promise<number | CommandResult>;
}

/** The output of a command: JSON with `--json`, otherwise the text. */
export type CommandResult = { readonly text: string; readonly exitCode?: number } & (
  | { /** Printed on one line. */ readonly json: unknown }
  | { /** Printed with indentation. */ readonly document: unknown }
  | ListResult
);

interface ListResult {
  /** Each item is printed on one line. */
  readonly items: readonly unknown[];
  /** Printed on stderr if there are no items. */
  readonly none?: string;
  /** The value of `--after` for the next page, if there may be one. */
  readonly next?: string | undefined;
}

const jsonOption = { json: { type: 'boolean', summary: 'prints JSON' } } as const;
type JsonOption = typeof jsonOption;

/** A command with `--json`. Its arguments are parsed, with the types that its options declare. */
export function defineCommand<
  const O extends Options,
  const A extends string | undefined = undefined,
>(
  definition: Omit<CommandDefinition<O & JsonOption, A>, 'options'> & { readonly options?: O },
): Command {
  const options = { ...definition.options, ...jsonOption } as O & JsonOption;
  return defineTextCommand<O & JsonOption, A>({ ...definition, options });
}

/** A command whose output is text only, or that defines `--json` itself. */
export function defineTextCommand<
  const O extends Options,
  const A extends string | undefined = undefined,
>(definition: CommandDefinition<O, A>): Command {
  const { argument: what, hasArguments, run, ...command } = definition;
  const { name, options, usage: rest } = command;
  return {
    ...command,
    usage: rest === undefined ? name : `${name} ${rest}`,
    async run(context) {
      const parsed = { name, ...readArgs(name, context.args, options) };
      const argument = what === undefined ? undefined : oneArgument(parsed, what);
      if (what === undefined && hasArguments !== true) noArguments(parsed);
      const result = await run({ ...context, ...parsed, argument } as Invocation<O, A>);
      if (typeof result === 'number') return result;
      const { json: isJson } = parsed.values as { readonly json?: boolean };
      await print(context, result, isJson === true);
      return result.exitCode ?? exitCodes.ok;
    },
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
  return `${command}: unknown option ${didYouMean(unknown, flags)}`;
}

interface Arguments {
  readonly name: string;
  readonly positionals: readonly string[];
}

function oneArgument({ name, positionals }: Arguments, what: string): string {
  const [argument, ...rest] = positionals;
  if (argument === undefined || argument === '' || rest.length > 0) {
    throw usage(`${name} needs one ${what}`);
  }
  return argument;
}

/** Returns the only argument of a command, or undefined if there is none. */
export function optionalArgument(given: Arguments, what: string): string | undefined {
  return given.positionals.length === 0 ? undefined : oneArgument(given, what);
}

function noArguments({ name, positionals }: Arguments): void {
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

async function print(
  { stdout, stderr, signal }: CommandContext,
  result: CommandResult,
  isJson: boolean,
): Promise<void> {
  const text = isJson ? jsonText(result) : result.text;
  await writeOut(stdout, text === '' || text.endsWith('\n') ? text : `${text}\n`, signal);
  if (isJson || !('items' in result)) return;
  const { items, none, next } = result;
  if (items.length === 0 && none !== undefined) stderr.write(`${none}\n`);
  if (next !== undefined) stderr.write(`next page: --after ${next}\n`);
}

function jsonText(result: CommandResult): string {
  if ('items' in result) return result.items.map((item) => `${JSON.stringify(item)}\n`).join('');
  return 'json' in result ? JSON.stringify(result.json) : JSON.stringify(result.document, null, 2);
}
