// How the adapter talks to NATS: the user's connection or one of our own, which comes back by
// itself, keeps no queue while it is away, and tells of it once.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { MillraceError } from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import { parseNatsUrl } from './url.ts';

export interface NatsConnectionOptions {
  readonly observer?: Observer;
  /** How long an answer may take. Default: 5 s. */
  readonly timeoutMs?: number;
}

export interface NatsWatch {
  /** The connection broke: what was asked over it gets no answer any more. */
  readonly onAway?: () => void;
}

export interface NatsConnection extends AsyncDisposable {
  /** Rejects at once while the server is away: `STORE_UNAVAILABLE`, to be tried again. */
  ask<T>(call: (connection: Driver) => Promise<T>): Promise<T>;
}

export const natsDefaults = { timeoutMs: 5_000, reconnectMs: 250, pingMs: 10_000 } as const;

/** With a URL: connects, or says `STORE_UNAVAILABLE`. A connection of the user's stays the user's to close. */
export async function connectNats(
  target: string | Driver,
  {
    observer = silentObserver,
    timeoutMs = natsDefaults.timeoutMs,
    onAway,
  }: NatsConnectionOptions & NatsWatch = {},
): Promise<NatsConnection> {
  const isOwn = typeof target === 'string';
  const driver = isOwn ? await open(target, timeoutMs) : target;
  let isAway = false;
  let isClosed = false;
  const watching = watch();

  async function watch(): Promise<void> {
    for await (const { type } of driver.status()) {
      // The user's own connection goes on without us.
      if (isClosed) return;
      if (type === 'disconnect' && !isAway) {
        isAway = true;
        onAway?.();
        observer.log?.warn({ server: driver.getServer() }, 'NATS is away');
      }
      if (type === 'reconnect' && isAway) {
        isAway = false;
        observer.log?.info({ server: driver.getServer() }, 'NATS is back');
      }
    }
  }

  return {
    async ask(call) {
      if (isClosed || driver.isClosed()) throw closed();
      // The driver would keep what is published now, and send it whenever it is back.
      if (isAway) throw natsUnavailable(new Error('the server is away'));
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
  const { tls, servers, user, password, token } = parseNatsUrl(url);
  const { connect } = await loadDriver(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  );
  try {
    return await connect({
      servers: [...servers],
      ...(user === undefined ? {} : { user }),
      ...(password === undefined ? {} : { pass: password }),
      ...(token === undefined ? {} : { token }),
      ...(tls ? { tls: {} } : {}),
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

/** Names of the driver's errors that trying again does not mend. */
const lasting: ReadonlySet<string> = new Set([
  'AuthorizationError',
  'PermissionViolationError',
  'UserAuthenticationExpiredError',
  'InvalidSubjectError',
  'InvalidArgumentError',
  'InvalidNameError',
  'JetStreamNotEnabled',
]);

function natsUnavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new MillraceError('STORE_UNAVAILABLE', `NATS did not do it: ${reason}`, {
    cause: error,
    retryable: !(error instanceof Error && lasting.has(error.name)),
    details: { reason },
  });
}

function closed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the connection to NATS was closed');
}
