// Exchanges a few lines over a raw socket, to check without a driver that a server is the right one and ready.

import { connect } from 'node:net';
import { loopback } from './reserve-port.ts';

export interface Turn {
  readonly send?: string;
  /** The reply to wait for before the next turn. */
  readonly expect: RegExp;
}

const answerTimeoutMs = 2_000;

/** Resolves with all received data; rejects if the connection is refused, closed or times out. */
export function converse(
  port: number,
  turns: readonly Turn[],
  timeoutMs = answerTimeoutMs,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let all = '';
    let unread = '';
    let next = 0;
    const socket = connect({ host: loopback, port });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    const say = (): void => {
      const turn = turns[next];
      if (turn === undefined) {
        socket.destroy();
        resolve(all);
      } else if (turn.send !== undefined) socket.write(turn.send);
    };
    socket.setEncoding('utf8');
    socket.setTimeout(timeoutMs, () => fail(new Error(`no answer within ${timeoutMs} ms: ${all}`)));
    socket.on('error', fail);
    socket.on('close', () => fail(new Error(`connection closed by the server: ${all}`)));
    socket.on('connect', say);
    socket.on('data', (chunk: string) => {
      all += chunk;
      unread += chunk;
      const match = turns[next]?.expect.exec(unread);
      if (match === null || match === undefined) return;
      unread = unread.slice(match.index + match[0].length);
      next += 1;
      say();
    });
  });
}

/** The server's reply to one turn; empty while the server is not up. */
export function resultOf(port: number, turn: Turn): Promise<string> {
  return converse(port, [turn]).catch(() => '');
}
