// The process of a temporary server: it can be started, stopped, killed and paused, and keeps its port and folder.

import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createLifecycle } from '../../foundation/lifecycle.ts';
import { endTree, signalTree, stopTree, whenGone } from './process-tree.ts';
import { createServerLog } from './server-log.ts';
import { spawnServer, whenReady, type ServerPlan, type SpawnedServer } from './spawn-server.ts';
import { removeTempFolder } from './temp-folder.ts';

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

/** A server of a test. Disposing it ends the process and removes its folder. */
export interface ServerProcess extends AsyncDisposable {
  readonly host: string;
  /** The port stays the same over kill, stop and start. */
  readonly port: number;
  /** The data folder: kept over kill, stop and start, and removed when the server is disposed. */
  readonly folder: string;
  /** Undefined while the server is down. */
  readonly pid: number | undefined;
  /** Starts again after kill or stop, with its data; does nothing while it runs. */
  start(options?: WaitOptions): Promise<void>;
  /** Shuts down gracefully; resolves when the process has ended. */
  stop(): Promise<void>;
  /** SIGKILL to the server and its children; resolves when all of them have ended. */
  kill(): Promise<void>;
  /** SIGSTOP to the server and its children: connections stay open without a response. */
  pause(): void;
  resume(): void;
  /** The last lines that the server printed, over all of its starts. */
  log(): string;
}

const stopTimeoutMs = 10_000;

export function createServerProcess(plan: ServerPlan): ServerProcess {
  const log = createServerLog(plan.folder);
  let server: SpawnedServer | undefined;
  let endSignal = plan.discardSignal;
  let caller: AbortSignal | undefined;
  let lastLines: string | undefined;

  const lifecycle = createLifecycle({
    start: async (stopped) => {
      const signal = caller === undefined ? stopped : AbortSignal.any([stopped, caller]);
      const spawned = spawnServer(plan, log);
      server = spawned;
      await whenReady(plan, { server: spawned, log, signal });
      // The process crashed or was killed from outside: the next start() must start it.
      void spawned.exited.then(() => (server === spawned ? lifecycle.stop() : undefined));
    },
    stop: async () => {
      if (server === undefined) return;
      await end(server, endSignal);
      server = undefined;
    },
  });

  const runningPid = (): number | undefined =>
    server?.hasExited() === false ? server.pid : undefined;

  const presentPid = (): number => {
    const pid = runningPid();
    if (pid !== undefined) return pid;
    throw new MillraceError('SERVER_UNAVAILABLE', `${plan.name} is not running`);
  };

  return {
    host: plan.reserved.host,
    port: plan.reserved.port,
    folder: plan.folder,
    get pid() {
      return runningPid();
    },
    async start({ signal } = {}) {
      if (lastLines !== undefined) {
        throw new MillraceError('SERVER_UNAVAILABLE', `${plan.name} was disposed`);
      }
      if (signal?.aborted === true) throw aborted(signal);
      caller = signal;
      await lifecycle.start();
    },
    async stop() {
      endSignal = plan.stopSignal;
      try {
        await lifecycle.stop();
      } finally {
        endSignal = plan.discardSignal;
      }
    },
    async kill() {
      // Kill first, so that a graceful stop in progress also ends early.
      const pid = runningPid();
      const killed = pid === undefined ? [] : signalTree(pid, 'SIGKILL');
      await lifecycle.stop();
      await whenGone(killed);
    },
    pause: () => stopTree(presentPid()),
    resume: () => void signalTree(presentPid(), 'SIGCONT'),
    log: () => lastLines ?? log.lastLines(),
    async [Symbol.asyncDispose]() {
      if (lastLines !== undefined) return;
      lastLines = log.lastLines();
      await lifecycle.stop();
      await removeTempFolder(plan.folder);
      await plan.reserved[Symbol.asyncDispose]();
    },
  };
}

async function end(server: SpawnedServer, signal: NodeJS.Signals): Promise<void> {
  if (!server.hasExited()) await endTree(server.pid, { signal, graceMs: stopTimeoutMs });
  await server.whenExited();
}
