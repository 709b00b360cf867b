// The stream that a command is about: its one argument.

import { exitCodes, usage, type CommandContext } from './command.ts';

export function streamArgument(command: string, positionals: readonly string[]): string {
  const [stream, ...rest] = positionals;
  if (stream === undefined || stream === '' || rest.length > 0) {
    throw usage(`${command} takes one stream, such as banking.currency.v1-core-USD`);
  }
  return stream;
}

/** Says that nothing was ever written to a stream. */
export function noSuchStream(
  { stdout, stderr }: Pick<CommandContext, 'stdout' | 'stderr'>,
  { stream, json }: { readonly stream: string; readonly json: boolean },
): number {
  if (json) stdout.write('null\n');
  else stderr.write(`there is no stream '${stream}'\n`);
  return exitCodes.failed;
}
