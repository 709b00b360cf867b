// Ports that a test server can release and take again: outside the ephemeral range of the system, and reserved across
// processes and parallel runs.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { MillraceError } from '../../foundation/error.ts';

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The ports that tests use, and the loopback address on which they use them. */
export interface PortSpace extends PortRange {
  readonly host: string;
}

/** Nothing else listens on this port until it is released or this process ends. */
export interface ReservedPort extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
}

const firstPort = 10_240;
const lastPort = 65_535;
const portsMin = 1_000;
/** IANA's range, which macOS uses; Linux reports its range in /proc. */
const defaultEphemeral: PortRange = { first: 49_152, last: lastPort };

const space = portSpace(ephemeralRange(), process.pid);

/** The address on which the servers of this process's tests listen. */
export const loopback = space.host;

let nextPort = space.first + Math.floor(Math.random() * (space.last - space.first));

/** Reserves a port for a server that restarts on it, or for a connection that must fail. */
export async function reservePort(): Promise<ReservedPort> {
  for (let tried = space.first; tried <= space.last; tried += 1) {
    const port = nextPort;
    nextPort = port === space.last ? space.first : port + 1;
    const reservation = await reserve(port);
    if (reservation === undefined) continue;
    if (await isFree(port)) return { host: space.host, port, ...reservation };
    await reservation[Symbol.asyncDispose]();
  }
  throw new MillraceError(
    'SERVER_UNAVAILABLE',
    `no free port from ${space.first} to ${space.last} on ${space.host}`,
  );
}

/**
 * The larger range outside the ephemeral ports. Where every port is ephemeral: an address that only
 * this process uses, so no other process can take its ports.
 */
export function portSpace(ephemeral: PortRange, pid: number): PortSpace {
  const below = { first: firstPort, last: Math.min(ephemeral.first - 1, lastPort) };
  const above = { first: Math.max(ephemeral.last + 1, firstPort), last: lastPort };
  const size = ({ first, last }: PortRange): number => last - first + 1;
  const larger = size(below) >= size(above) ? below : above;
  if (size(larger) >= portsMin) return { host: '127.0.0.1', ...larger };
  const octets = [64 + ((pid >> 16) & 63), (pid >> 8) & 255, pid & 255];
  return { host: `127.${octets.join('.')}`, first: firstPort, last: lastPort };
}

function ephemeralRange(): PortRange {
  try {
    const text = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
    const [first = Number.NaN, last = Number.NaN] = text.trim().split(/\s+/).map(Number);
    if (first > 0 && last >= first) return { first, last };
  } catch {
    // This system is not Linux.
  }
  return defaultEphemeral;
}

/** The UDP port of the same number is the reservation: the kernel frees it with the process. */
async function reserve(port: number): Promise<AsyncDisposable | undefined> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ address: space.host, port, exclusive: true });
    await once(socket, 'listening');
  } catch {
    // Another process has reserved it.
    socket.close();
    return undefined;
  }
  socket.unref();
  const closed = once(socket, 'close');
  let isOpen = true;
  return {
    async [Symbol.asyncDispose]() {
      if (isOpen) socket.close();
      isOpen = false;
      await closed;
    },
  };
}

/** A server of a process that was killed may outlive its reservation for a moment. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host: space.host, port, exclusive: true });
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}
