// A throwaway FerretDB server on a free port, from the program that tools/engines.ts built.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { launchServer } from '../../servers/launch-server.ts';
import type { ServerProcess } from '../../servers/server-process.ts';

export interface FerretdbServer extends ServerProcess {
  /** `mongodb://127.0.0.1:<port>` */
  readonly url: string;
}

const built = fileURLToPath(
  new URL('../../../../.millrace/engines/ferretdb-v1.24.0/ferretdb', import.meta.url),
);

/** Undefined if the program was not built. */
export function ferretdbProgram(): string | undefined {
  const path = process.env['MILLRACE_ENGINE_FERRETDB'] ?? built;
  return existsSync(path) ? path : undefined;
}

export async function startFerretdb(program: string): Promise<FerretdbServer> {
  const server = await launchServer({ startTimeoutMs: 60_000 }, async ({ folder, port }) => ({
    name: 'ferretdb',
    program,
    args: [`127.0.0.1:${port}`, `${folder}/`],
    stopSignal: 'SIGTERM',
    discardSignal: 'SIGKILL',
    isReady: () => responds(`mongodb://127.0.0.1:${port}`),
  }));
  return Object.assign(server, { url: `mongodb://${server.host}:${server.port}` });
}

async function responds(url: string): Promise<boolean> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 500 });
  try {
    await client.db('admin').command({ ping: 1 });
    return true;
  } catch {
    return false;
  } finally {
    await client.close();
  }
}
