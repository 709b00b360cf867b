// From a command line to an exit code: finds the command, runs it, and says what went wrong.

import { MillraceError } from '../foundation/error.ts';
import { errorCodes } from '../foundation/error-codes.ts';
import { didYouMean, exitCodes, usage, type Command, type CommandContext } from './command.ts';
import { commands } from './commands.ts';
import { commandHelp, overview } from './help.ts';
import { packageVersion } from './package-version.ts';

export interface CliContext extends CommandContext {
  /** Stack traces, for whoever mends us. */
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
  const asksHelp = first === undefined || first === 'help' || first === '--help' || first === '-h';
  const words = asksHelp ? rest : args;
  const command = commands.find(({ name }) =>
    name.split(' ').every((word, at) => word === words[at]),
  );
  if (command === undefined) {
    stdout.write(overview(commandsOf(words), paint));
    return exitCodes.ok;
  }
  const own = words.slice(command.name.split(' ').length);
  if (asksHelp || wantsHelp(own)) {
    stdout.write(commandHelp(command, paint));
    return exitCodes.ok;
  }
  return command.run({ ...context, args: own });
}

/** All commands, or those behind a first word that several share; anything else is a mistake. */
function commandsOf([name, second]: readonly string[]): readonly Command[] {
  if (name === undefined) return commands;
  const group = commands.filter((command) => command.name.startsWith(`${name} `));
  if (group.length > 0 && (second === undefined || wantsHelp([second]))) return group;
  const typed = group.length === 0 ? name : `${name} ${second}`;
  const known = [...(group.length === 0 ? commands : group).map((command) => command.name), 'help'];
  const kind = name.startsWith('-') ? 'option' : 'command';
  throw usage(`there is no ${kind} ${didYouMean(typed, known)}`);
}

/** Behind `--`, `-h` is an argument like any other. */
function wantsHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const options = end === -1 ? args : args.slice(0, end);
  return options.includes('--help') || options.includes('-h');
}

function explain(error: unknown, { stderr, paint, debug }: CliContext): number {
  if (error instanceof MillraceError && error.code === 'USAGE') {
    stderr.write(`${paint.red('millrace:')} ${error.message} (see millrace --help)\n`);
  } else if (error instanceof MillraceError) {
    stderr.write(`${paint.red(`${error.code}:`)} ${error.message}\n`);
    stderr.write(`  ${errorCodes[error.code].remedy}\n`);
  } else {
    const message = error instanceof Error ? error.message : String(error);
    stderr.write(`${paint.red('unexpected error:')} ${message}\n`);
    if (!debug) stderr.write('  Set MILLRACE_DEBUG=1 to see where it comes from.\n');
  }
  if (debug && error instanceof Error) stderr.write(`${error.stack ?? ''}\n`);
  return error instanceof MillraceError && error.code === 'USAGE'
    ? exitCodes.usage
    : exitCodes.failed;
}
