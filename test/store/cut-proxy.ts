// A proxy between a store and its database that can lose a reply: the statement is executed, and the
// connection breaks before the store gets the reply.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CutProxy extends AsyncDisposable {
  /** The URL of the database through the proxy. */
  readonly url: string;
  /** How many replies were lost. */
  readonly cuts: number;
  /** Loses the replies to the next `count` statements whose name contains this word. */
  cut(word: string, count: number): void;
}

/** The server's ReadyForQuery message, which ends a statement. */
const ready = Buffer.from([0x5a, 0, 0, 0, 5]);

export async function startCutProxy(url: string): Promise<CutProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let word = '';
  let left = 0;
  let cuts = 0;

  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname);
    let muted = false;
    const end = (): void => {
      client.destroy();
      database.destroy();
    };
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on('error', end);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on('data', (chunk: Buffer) => {
      if (left > 0 && chunk.includes(word)) {
        left -= 1;
        muted = true;
      }
      database.write(chunk);
    });
    database.on('data', (chunk: Buffer) => {
      if (!muted) {
        client.write(chunk);
        return;
      }
      if (!chunk.includes(ready)) return;
      cuts += 1;
      end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = new URL(url);
  near.port = String((server.address() as AddressInfo).port);

  return {
    url: near.href,
    get cuts() {
      return cuts;
    },
    cut(part, count) {
      word = part;
      left = count;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
