// The process: arguments, streams, signals and the exit code. All other files get them as values.

import process from 'node:process';
import { addAbortSignal } from 'node:stream';
import { runCli } from './run-cli.ts';
import { createPaint } from './terminal/paint.ts';

const { stdout, stderr, env } = process;

// `millrace lint | head` closes the pipe early, which is not an error.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

// Our error reports a port in use; gRPC would print another line about it.
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
    // Ctrl-C must end a read from a stdin that never gets input.
    return addAbortSignal(interrupt.signal, process.stdin);
  },
  env,
  signal: interrupt.signal,
  cwd: process.cwd(),
  isTTY,
  paint: createPaint(isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'),
  debug: (env['MILLRACE_DEBUG'] ?? '') !== '',
});
// An open stdin would keep the process alive.
if (readsInput) process.stdin.destroy();
// After a signal the shutdown is complete or out of time: no handle may keep the process alive.
if (interrupt.signal.aborted) process.exit();
// A driver that keeps reconnecting must not keep the process alive.
setTimeout(() => process.exit(), 5_000).unref();

/** The first SIGINT or SIGTERM stops the command; a second one exits the process immediately. */
function onStopSignals(stop: () => void): void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  // npm forwards a Ctrl-C that the terminal has already sent to the whole group, so it arrives twice.
  const echoMs = 250;
  let stoppedAtMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (stoppedAtMs === undefined) {
      stoppedAtMs = nowMs;
      stop();
    } else if (nowMs - stoppedAtMs > echoMs) {
      for (const each of signals) process.off(each, onSignal);
      process.kill(process.pid, signal);
    }
  };
  for (const each of signals) process.on(each, onSignal);
}
