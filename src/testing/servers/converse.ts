// A few turns of a line protocol over a raw socket: enough to see that a server is the right one
// and ready, without any driver.

import { connect } from 'node:net';
import { loopback } from './reserve-port.ts';

export interface Turn {
  readonly send?: string;
  /** What has to arrive, after the turn before, until the next turn begins. */
  readonly expect: RegExp;
}

const answerTimeoutMs = 2_000;

/** Resolves with all that was received; rejects when refused, cut off or left without an answer. */
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

/** What the server says to one turn, or nothing as long as it is not up. */
export function answerTo(port: number, turn: Turn): Promise<string> {
  return converse(port, [turn]).catch(() => '');
}
