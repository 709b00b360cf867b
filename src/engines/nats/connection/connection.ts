// The connection to NATS: the caller's, or one that is opened here. It reconnects automatically, queues nothing while
// disconnected, and logs each outage once.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { urlParts } from '../../../contracts/engine-url.ts';
import {
  convertErrors,
  MillraceError,
  type PortPrefix,
  renameError,
} from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';

export interface NatsConnectionOptions {
  readonly observer?: Observer | undefined;
  /** How long the server may take to reply. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
}

export interface NatsWatch {
  /** Called when the connection is lost: requests in flight get no reply. */
  readonly onLost?: (() => void) | undefined;
}

export interface NatsConnection extends AsyncDisposable {
  /** Rejects immediately while disconnected, with a retryable `STORE_UNAVAILABLE`. */
  run<T>(call: (connection: Driver) => Promise<T>): Promise<T>;
}

export const natsDefaults = { timeoutMs: 5_000, reconnectMs: 250, pingMs: 10_000 } as const;

/** With a URL: connects, or rejects with `STORE_UNAVAILABLE`. A connection that was passed in is not closed. */
export async function connectNats(
  target: string | Driver,
  {
    observer = silentObserver,
    timeoutMs = natsDefaults.timeoutMs,
    onLost,
  }: NatsConnectionOptions & NatsWatch = {},
): Promise<NatsConnection> {
  const isOwn = typeof target === 'string';
  const driver = isOwn ? await open(target, timeoutMs) : target;
  let isLost = false;
  let isClosed = false;
  const watching = watch();

  async function watch(): Promise<void> {
    for await (const { type } of driver.status()) {
      // The caller's connection may outlive this object.
      if (isClosed) return;
      if (type === 'disconnect' && !isLost) {
        isLost = true;
        onLost?.();
        observer.log?.warn({ server: driver.getServer() }, 'NATS connection lost');
      }
      if (type === 'reconnect' && isLost) {
        isLost = false;
        observer.log?.info({ server: driver.getServer() }, 'NATS connection restored');
      }
    }
  }

  return {
    async run(call) {
      if (isClosed || driver.isClosed()) throw closed();
      // The driver would queue the message and send it after the reconnect.
      if (isLost) throw natsUnavailable('connection lost');
      try {
        return await call(driver);
      } catch (error) {
        throw isClosed ? closed() : natsUnavailable(error);
      }
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      if (!isOwn) return;
      await driver.close();
      await watching;
    },
  };
}

async function open(url: string, timeoutMs: number): Promise<Driver> {
  const { scheme, hosts, user, password } = urlParts(url, 'url', 'nats');
  const { connect } = await loadDriver(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  );
  try {
    return await connect({
      servers: hosts.map(({ host, port }) => `${host}:${port}`),
      // A user without a password is a token.
      ...(password !== undefined
        ? { user: user ?? '', pass: password }
        : user === undefined
          ? {}
          : { token: user }),
      ...(scheme === 'nats' ? {} : { tls: {} }),
      name: 'millrace',
      timeout: timeoutMs,
      maxReconnectAttempts: -1,
      reconnectTimeWait: natsDefaults.reconnectMs,
      reconnectJitter: natsDefaults.reconnectMs,
      pingInterval: natsDefaults.pingMs,
    });
  } catch (error) {
    throw natsUnavailable(error);
  }
}

/** Names of the driver's errors that a retry does not fix. */
const permanentErrors: ReadonlySet<string> = new Set([
  'AuthorizationError',
  'PermissionViolationError',
  'UserAuthenticationExpiredError',
  'InvalidSubjectError',
  'InvalidArgumentError',
  'InvalidNameError',
  'JetStreamNotEnabled',
]);

/** The error of the driver, or a reason, as `STORE_UNAVAILABLE`. */
export function natsUnavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new MillraceError('STORE_UNAVAILABLE', `NATS request failed: ${reason}`, {
    cause: error instanceof Error ? error : undefined,
    retryable: !(error instanceof Error && permanentErrors.has(error.name)),
    details: { reason },
  });
}

/** Reports errors of the connection with the codes of bus or tasks. */
export function withCodes<T>(prefix: PortPrefix, work: () => Promise<T>): Promise<T> {
  return convertErrors(work, (error) => renameError(error, prefix));
}

function closed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the NATS connection was closed');
}
