// From options to a running server: a folder and a port of its own, and nothing left of a start
// that failed.

import { freePort, retryOnTakenPort } from './free-port.ts';
import type { ProgramOptions } from './find-program.ts';
import { createServerProcess, type ServerProcess, type WaitOptions } from './server-process.ts';
import type { ServerPlan } from './spawn-server.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

/** What all servers take. */
export interface ServerOptions extends WaitOptions, ProgramOptions {
  /** How long the server may take to answer. */
  readonly startTimeoutMs?: number;
}

/** Generous: after a crash on a slow disk, PostgreSQL alone takes most of a minute. */
export const serverDefaults = { startTimeoutMs: 120_000 };

interface Place {
  readonly folder: string;
  readonly port: number;
}

/** What a kind of server adds to its place. */
type Layout = Omit<ServerPlan, keyof Place | 'startTimeoutMs'>;

export type LayOut = (place: Place) => Promise<Layout>;

/** Starts the server on a free port. */
export function launchServer(options: ServerOptions, layOut: LayOut): Promise<ServerProcess> {
  return retryOnTakenPort(async () => launchServerOn(await freePort(), options, layOut));
}

/** Starts the server on this port and no other. */
export async function launchServerOn(
  port: number,
  options: ServerOptions,
  layOut: LayOut,
): Promise<ServerProcess> {
  const folder = await createTempFolder('server');
  try {
    const startTimeoutMs = options.startTimeoutMs ?? serverDefaults.startTimeoutMs;
    const layout = await layOut({ folder, port });
    const server = createServerProcess({ ...layout, folder, port, startTimeoutMs });
    await server.start(options);
    return server;
  } catch (error) {
    await removeTempFolder(folder);
    throw error;
  }
}
