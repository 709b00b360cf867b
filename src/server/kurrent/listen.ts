// Opens and closes the port.

import type * as GrpcJs from '@grpc/grpc-js';
import { isIP } from 'node:net';
import { MillraceError } from '../../foundation/error.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import type { Protocol } from './protocol/load-protocol.ts';

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
}

/** Opens the port and returns its number. */
export async function listen(
  { grpc }: Protocol,
  server: GrpcJs.Server,
  { host, port, tls }: ListenOptions,
): Promise<number> {
  const { ServerCredentials } = grpc;
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) },
        ]);
  return new Promise((resolve, reject) => {
    server.bindAsync(`${authorityOf(host)}:${port}`, credentials, (error, bound) => {
      if (error === null) return resolve(bound);
      const reason = `cannot listen on ${host}:${port}: ${error.message}`;
      reject(
        new MillraceError('SERVER_UNAVAILABLE', reason, { cause: error, details: { host, port } }),
      );
    });
  });
}

/** Waits for running calls, then closes the rest by force. */
export async function shutDown(
  server: GrpcJs.Server,
  idle: Promise<void>,
  stopMsMax: number,
): Promise<void> {
  const closed = async (): Promise<void> => {
    await idle;
    await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  };
  await withinTime(closed(), { ms: stopMsMax, late: () => server.forceShutdown() });
}

export function authorityOf(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
