// Spawns the program of a server and waits until it responds.

import { spawn } from 'node:child_process';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { notifyReaper } from './reaper.ts';
import type { ReservedPort } from './reserve-port.ts';
import { programEnvironment, type ProgramUser } from './run-program.ts';
import type { ServerLog } from './server-log.ts';

export interface ServerPlan {
  /** The name of the server in messages. */
  readonly name: string;
  readonly folder: string;
  /** Reserved until the server is disposed, so the server can restart on the same port. */
  readonly reserved: ReservedPort;
  readonly program: string;
  readonly args: readonly string[];
  readonly user?: ProgramUser | undefined;
  /** The signal for a graceful shutdown. */
  readonly stopSignal: NodeJS.Signals;
  /** The fastest signal that leaves nothing on the machine. */
  readonly discardSignal: NodeJS.Signals;
  readonly startTimeoutMs: number;
  /** Whether this process serves the port, because another server may have taken it first. */
  readonly isReady: (pid: number) => Promise<boolean>;
}

export interface SpawnedServer {
  readonly pid: number;
  /** Does not keep the process of the test alive. */
  readonly exited: Promise<void>;
  hasExited(): boolean;
  /** Keeps the process alive, which could otherwise end during this wait. */
  whenExited(): Promise<void>;
}

const pollIntervalMs = 10;

export function spawnServer(plan: ServerPlan, log: ServerLog): SpawnedServer {
  log.mark();
  // A file, not a pipe: it does not keep the process alive, and a server that outlives it gets no SIGPIPE.
  const child = log.lend((output) =>
    spawn(plan.program, plan.args, {
      cwd: plan.folder,
      env: programEnvironment(plan.folder),
      stdio: ['ignore', output, output],
      detached: true,
      ...plan.user,
    }),
  );
  const { pid } = child;
  if (pid === undefined) {
    // An error event without a listener would be thrown; the missing pid already reports it.
    child.once('error', () => undefined);
    throw new MillraceError('SERVER_UNAVAILABLE', `cannot start ${plan.program}`);
  }
  notifyReaper({ kind: 'process', pid, signal: plan.discardSignal });
  // A test file that does not dispose its server still ends.
  child.unref();
  let ended = false;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      ended = true;
      notifyReaper({ kind: 'process-ended', pid });
      resolve();
    });
  });
  return {
    pid,
    exited,
    hasExited: () => ended,
    whenExited: () => {
      if (!ended) child.ref();
      return exited;
    },
  };
}

export interface Readiness {
  readonly server: SpawnedServer;
  readonly log: ServerLog;
  readonly signal: AbortSignal;
}

/** Resolves when the server responds; otherwise throws `SERVER_UNAVAILABLE` with its output. */
export async function whenReady(plan: ServerPlan, wait: Readiness): Promise<void> {
  const { server, log, signal } = wait;
  const deadline = performance.now() + plan.startTimeoutMs;
  for (;;) {
    const ready = await plan.isReady(server.pid);
    if (server.hasExited()) throw unavailable(plan, log, 'ended while starting');
    if (ready) return;
    if (performance.now() > deadline) {
      throw unavailable(plan, log, `did not come up within ${plan.startTimeoutMs} ms`);
    }
    await systemClock.sleep(pollIntervalMs, signal);
  }
}

function unavailable(plan: ServerPlan, log: ServerLog, what: string): MillraceError {
  const lines = log.lastLines('since-mark');
  const { host, port } = plan.reserved;
  return new MillraceError(
    'SERVER_UNAVAILABLE',
    `${plan.name} on ${host}:${port} ${what}:\n${lines}`,
    { details: { log: lines } },
  );
}
