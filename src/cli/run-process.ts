// The process: arguments, streams, signals and the exit code. Everything else takes them as values.

import process from 'node:process';
import { addAbortSignal } from 'node:stream';
import { onStopSignals } from './on-stop-signals.ts';
import { createPaint } from './paint.ts';
import { runCli } from './run-cli.ts';

const { stdout, stderr, env } = process;

// `millrace lint | head`: the reader has seen enough, which is no error of ours.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

// gRPC also prints a line about a port that is in use; the error of the start reports it already.
env['GRPC_NODE_VERBOSITY'] ??= env['GRPC_VERBOSITY'] ?? 'NONE';

const interrupt = new AbortController();
onStopSignals(() => interrupt.abort());

const { isTTY } = stdout;
let readsInput = false;
process.exitCode = await runCli({
  args: process.argv.slice(2),
  stdout,
  stderr,
  stdin: () => {
    readsInput = true;
    // Nobody may ever write to it: waiting for it must end with Ctrl-C, too.
    return addAbortSignal(interrupt.signal, process.stdin);
  },
  env,
  signal: interrupt.signal,
  cwd: process.cwd(),
  isTTY,
  paint: createPaint(isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'),
  debug: (env['MILLRACE_DEBUG'] ?? '') !== '',
});
// Whatever is still to come from there is not wanted any more, and must not keep the process.
if (readsInput) process.stdin.destroy();
// Told to stop, and done with it or out of time: nothing may keep it.
if (interrupt.signal.aborted) process.exit();
// A driver that still tries to reach somebody: there is nobody left to tell.
setTimeout(() => process.exit(), 5_000).unref();
