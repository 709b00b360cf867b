// A temporary NATS server with JetStream on a free port.

import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { resultOf } from './converse.ts';
import { findProgram, usualFolders } from './find-program.ts';
import { loopback } from './reserve-port.ts';
import { launchServer, type ServerOptions } from './launch-server.ts';
import type { ServerProcess } from './server-process.ts';

export interface NatsOptions extends ServerOptions {
  /** Further settings of the `jetstream` block, such as `sync_interval: 'always'` (from 2.10). */
  readonly jetstream?: Readonly<Record<string, string>> | undefined;
  /** Further settings of the configuration file, values in its own syntax. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
}

export interface NatsServer extends ServerProcess {
  /** `nats://127.0.0.1:<port>` */
  readonly url: string;
}

/**
 * Starts a NATS server with JetStream for a test.
 *
 * @example
 * import { startNats } from 'millrace/testing';
 *
 * await using nats = await startNats();
 * console.log(nats.url);
 */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const program = findProgram({
    name: 'nats-server',
    debianPackage: 'nats-server',
    folders: options.programFolders ?? usualFolders(),
  });
  const server = await launchServer(options, async ({ folder, port }) => {
    // NATS reports no pid, so its name identifies the server on this port as ours.
    const name = `millrace-${randomBytes(5).toString('hex')}`;
    const file = join(folder, 'nats.conf');
    const jetstream = { store_dir: JSON.stringify(folder), ...options.jetstream };
    const settings = {
      listen: `"${loopback}:${port}"`,
      server_name: name,
      jetstream: `{ ${lines(jetstream).join(', ')} }`,
      ...options.settings,
    };
    await writeFile(file, `${lines(settings).join('\n')}\n`);
    return {
      name: 'nats-server',
      program,
      args: ['--config', file],
      stopSignal: 'SIGTERM',
      discardSignal: 'SIGKILL',
      isReady: async () => (await resultOf(port, { expect: /^INFO .*\r\n/ })).includes(`"${name}"`),
    };
  });
  return Object.assign(server, { url: `nats://${server.host}:${server.port}` });
}

function lines(settings: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(settings).map(([name, value]) => `${name}: ${value}`);
}
