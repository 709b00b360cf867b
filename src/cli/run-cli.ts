// Executes a command line: finds the command, runs it or shows its help, explains errors, and returns the exit code.

import { MillraceError } from '../foundation/error.ts';
import { errorCodes } from '../foundation/error-codes.ts';
import {
  didYouMean,
  exitCodes,
  usage,
  type Command,
  type CommandContext,
  type Options,
} from './command.ts';
import { startCommand } from './commands/start.ts';
import { packageVersion } from './package-version.ts';
import type { Paint } from './terminal/paint.ts';

export interface CliContext extends CommandContext {
  /** Prints stack traces. */
  readonly debug: boolean;
}

export async function runCli(context: CliContext): Promise<number> {
  try {
    return await dispatch(context);
  } catch (error) {
    if (context.signal.aborted) return exitCodes.interrupted;
    return explain(error, context);
  }
}

async function dispatch(context: CliContext): Promise<number> {
  const { args, stdout, paint } = context;
  const [first, ...rest] = args;
  if (first === '--version' || first === '-v') {
    stdout.write(`${packageVersion()}\n`);
    return exitCodes.ok;
  }
  const isHelp = first === undefined || first === 'help' || first === '--help' || first === '-h';
  const words = isHelp ? rest : args;
  const commands = await loadCommands(first);
  const command = commands.find(({ name }) =>
    name.split(' ').every((word, at) => word === words[at]),
  );
  if (command === undefined) {
    stdout.write(overview(shownCommands(commands, words), paint));
    return exitCodes.ok;
  }
  const own = words.slice(command.name.split(' ').length);
  if (isHelp || wantsHelp(own)) {
    stdout.write(commandHelp(command, paint));
    return exitCodes.ok;
  }
  return command.run({ ...context, args: own });
}

/** A server starts faster, and with less memory, without the other commands. */
async function loadCommands(first: string | undefined): Promise<readonly Command[]> {
  return first === startCommand.name
    ? [startCommand]
    : (await import('./commands/index.ts')).commands;
}

/** All commands, or those of a group such as `stream`; anything else is an error. */
function shownCommands(
  commands: readonly Command[],
  [name, second]: readonly string[],
): readonly Command[] {
  if (name === undefined) return commands;
  const group = commands.filter((command) => command.name.startsWith(`${name} `));
  if (group.length > 0 && (second === undefined || wantsHelp([second]))) return group;
  const typed = group.length === 0 ? name : `${name} ${second}`;
  const known = [...(group.length === 0 ? commands : group).map((command) => command.name), 'help'];
  const kind = name.startsWith('-') ? 'option' : 'command';
  throw usage(`unknown ${kind} ${didYouMean(typed, known)}`);
}

/** After `--`, `-h` is an ordinary argument. */
function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const options = end === -1 ? args : args.slice(0, end);
  return options.includes('--help') || options.includes('-h');
}

function overview(shown: readonly Command[], paint: Paint): string {
  const rows = shown.map(({ name, summary }) => [name, summary] as const);
  return [
    `${paint.bold('millrace')}: the event backbone for TypeScript teams`,
    '',
    paint.bold('Usage'),
    '  millrace <command> [options]',
    '',
    paint.bold('Commands'),
    ...helpTable([...rows, ['help <command>', 'shows how to use a command']], paint),
    '',
    paint.bold('Options'),
    ...helpTable(
      [
        ['-h, --help', 'shows this help, or the help of a command'],
        ['-v, --version', 'shows the version'],
      ],
      paint,
    ),
    '',
  ].join('\n');
}

export function commandHelp(command: Command, paint: Paint): string {
  const lines = [
    `${paint.bold(`millrace ${command.name}`)}: ${command.summary}`,
    '',
    paint.bold('Usage'),
    `  millrace ${command.usage}`,
    '',
  ];
  const sections = [
    {
      title: 'Options',
      rows: [...optionRows(command.options), ['-h, --help', 'shows this help'] as const],
    },
    ...Object.values(command.options).flatMap(({ section }) => section ?? []),
    ...(command.sections ?? []),
  ];
  for (const { title, rows } of sections) {
    lines.push(paint.bold(title), ...helpTable(rows, paint), '');
  }
  lines.push(paint.bold('Examples'), ...command.examples.map((example) => `  ${example}`), '');
  return lines.join('\n');
}

function optionRows(options: Options): (readonly [string, string])[] {
  return Object.entries(options).map(([name, { value, summary }]) => [
    value === undefined ? `--${name}` : `--${name} <${value}>`,
    summary,
  ]);
}

function helpTable(rows: readonly (readonly [string, string])[], paint: Paint): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${paint.cyan(left.padEnd(width))}${right}`);
}

function explain(error: unknown, { stderr, paint, debug }: CliContext): number {
  const isUsage = error instanceof MillraceError && error.code === 'USAGE';
  if (isUsage) {
    stderr.write(`${paint.red('millrace:')} ${error.message} (see millrace --help)\n`);
  } else if (error instanceof MillraceError) {
    stderr.write(`${paint.red(`${error.code}:`)} ${error.message}\n`);
    stderr.write(`  ${errorCodes[error.code].remedy}\n`);
  } else {
    const message = error instanceof Error ? error.message : String(error);
    stderr.write(`${paint.red('unexpected error:')} ${message}\n`);
    if (!debug) stderr.write('  Set MILLRACE_DEBUG=1 to print the stack trace.\n');
  }
  if (debug && error instanceof Error) stderr.write(`${error.stack ?? ''}\n`);
  return isUsage ? exitCodes.usage : exitCodes.failed;
}
