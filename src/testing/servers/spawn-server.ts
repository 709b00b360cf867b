// One run of a server's program, from the spawn until it answers.

import { spawn } from 'node:child_process';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { tellReaper } from './reaper.ts';
import type { ReservedPort } from './reserve-port.ts';
import { programEnvironment, type ProgramUser } from './run-program.ts';
import type { ServerLog } from './server-log.ts';

export interface ServerPlan {
  /** As it appears in messages. */
  readonly name: string;
  readonly folder: string;
  /** Kept until the server is disposed, so that it can come back on the same port. */
  readonly reserved: ReservedPort;
  readonly program: string;
  readonly args: readonly string[];
  readonly user?: ProgramUser | undefined;
  /** The polite way to end it. */
  readonly stopSignal: NodeJS.Signals;
  /** The quickest way to end it that leaves nothing on the machine. */
  readonly discardSignal: NodeJS.Signals;
  readonly startTimeoutMs: number;
  /** Whether this very process serves: another server may have been faster to take the port. */
  readonly isReady: (pid: number) => Promise<boolean>;
}

export interface SpawnedServer {
  readonly pid: number;
  /** Does not hold the event loop. */
  readonly exited: Promise<void>;
  hasExited(): boolean;
  /** Holds the event loop: without it a process could end in the middle of this wait. */
  whenExited(): Promise<void>;
}

const pollIntervalMs = 10;

export function spawnServer(plan: ServerPlan, log: ServerLog): SpawnedServer {
  log.mark();
  // A file, not a pipe: it holds nothing on our event loop, and a server that outlives us until
  // the reaper comes gets no SIGPIPE.
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
    // The event only repeats what the missing pid says, and is thrown if nobody listens.
    child.once('error', () => undefined);
    throw new MillraceError('SERVER_UNAVAILABLE', `${plan.program} cannot be run`);
  }
  tellReaper({ kind: 'process', pid, signal: plan.discardSignal });
  // A test file that forgets its server still ends.
  child.unref();
  let ended = false;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      ended = true;
      tellReaper({ kind: 'process-ended', pid });
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

/** Resolves when the server answers; otherwise `SERVER_UNAVAILABLE` with what it had to say. */
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
