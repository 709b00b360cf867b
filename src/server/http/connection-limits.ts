// Limits the connections of one address, and keeps a few connections for health checks.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  /** A proxy opens all connections from one address. Default: a fifth of `connectionsMax`. */
  readonly connectionsPerAddressMax?: number | undefined;
}

const reserveLimits = {
  /** Connections above the limits that only health checks may use. */
  socketsMax: 64,
  perAddressMax: 8,
  /** The time to send a request. */
  idleMs: 5_000,
} as const;

/** Returns a function that is true for connections of the reserve. */
export function limitConnections(
  server: Server,
  { connectionsMax, connectionsPerAddressMax = Math.ceil(connectionsMax / 5) }: ConnectionLimits,
): (socket: object) => boolean {
  const open = new Map<string, number>();
  const reserve = new Map<Socket, string>();
  let count = 0;

  server.maxConnections = connectionsMax + reserveLimits.socketsMax;
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const ofAddress = open.get(address) ?? 0;
    if (count >= connectionsMax || ofAddress >= connectionsPerAddressMax) {
      useReserve(socket, address);
      return;
    }
    count += 1;
    open.set(address, ofAddress + 1);
    socket.once('close', () => {
      count -= 1;
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });

  function useReserve(socket: Socket, address: string): void {
    const ofAddress = [...reserve.values()].filter((each) => each === address).length;
    if (reserve.size >= reserveLimits.socketsMax || ofAddress >= reserveLimits.perAddressMax) {
      socket.destroy();
      return;
    }
    reserve.set(socket, address);
    const timer = setTimeout(() => socket.destroy(), reserveLimits.idleMs);
    socket.once('close', () => {
      clearTimeout(timer);
      reserve.delete(socket);
    });
  }

  return (socket) => reserve.has(socket as Socket);
}
