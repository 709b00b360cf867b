// Starts a server with a separate folder and port, and removes both if the start fails.

import type { ProgramOptions } from './find-program.ts';
import { reservePort, type ReservedPort } from './reserve-port.ts';
import { createServerProcess, type ServerProcess, type WaitOptions } from './server-process.ts';
import type { ServerPlan } from './spawn-server.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

/** Options of all servers. */
export interface ServerOptions extends WaitOptions, ProgramOptions {
  /** How long the server may take to become ready. */
  readonly startTimeoutMs?: number | undefined;
}

/** Generous: after a crash on a slow disk, PostgreSQL alone takes most of a minute. */
export const serverDefaults = { startTimeoutMs: 120_000 };

interface ServerAddress {
  readonly folder: string;
  readonly port: number;
}

/** The command and settings of one kind of server. */
type Layout = Omit<ServerPlan, 'folder' | 'reserved' | 'startTimeoutMs'>;

export type LayOut = (address: ServerAddress) => Promise<Layout>;

/** Starts the server on a reserved port. */
export async function launchServer(options: ServerOptions, layOut: LayOut): Promise<ServerProcess> {
  return launchServerOn(await reservePort(), options, layOut);
}

/** Starts the server on this port, which is released when the server is disposed. */
export async function launchServerOn(
  reserved: ReservedPort,
  options: ServerOptions,
  layOut: LayOut,
): Promise<ServerProcess> {
  const folder = await createTempFolder('server');
  try {
    const startTimeoutMs = options.startTimeoutMs ?? serverDefaults.startTimeoutMs;
    const layout = await layOut({ folder, port: reserved.port });
    const server = createServerProcess({ ...layout, folder, reserved, startTimeoutMs });
    await server.start(options);
    return server;
  } catch (error) {
    await removeTempFolder(folder);
    await reserved[Symbol.asyncDispose]();
    throw error;
  }
}
