import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** A bare status, as ntfy has it: a WebSocket's client shows nothing else. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  if (socket.destroyed) return;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'connection: close',
    'content-length: 0',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n`, () => socket.destroy());
}
