// Ports that nobody listens on, by the kernel's word.

import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { hasCode } from '../../foundation/error.ts';

export const loopback = '127.0.0.1';

const attemptsMax = 5;

/** A port on 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, loopback);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Runs a start that takes free ports, and once more with others if someone was faster. */
export async function retryOnTakenPort<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      const lostRace = hasCode(error, 'SERVER_UNAVAILABLE') && error.details['portTaken'] === true;
      if (!lostRace || attempt === attemptsMax) throw error;
    }
  }
}
