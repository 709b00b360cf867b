// A destination that publishes to NATS JetStream, with the idempotency key as message id: the server drops a duplicate
// within the stream's duplicate window.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { occurredAtOf, type DeliveryMessage } from '../../delivery/delivery-message.ts';
import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { untilAborted } from '../../delivery/until-aborted.ts';
import { matchSubject, validateSubject } from '../../contracts/subject-match.ts';
import { subjectRootDefault } from '../../contracts/subjects.ts';
import { cleanText } from '../../foundation/error-text.ts';
import { hasCode } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import {
  connectNats,
  natsDefaults,
  type NatsConnectionOptions,
} from '../../engines/nats/connection/connection.ts';

export interface NatsDestinationOptions extends NatsConnectionOptions {
  /**
   * The subject, or a function that returns it for a message. A message is dead if the function returns wildcards, a
   * subject of the server, of Millrace's bus, or outside of the subjects in `stream`.
   */
  readonly subject: string | ((message: DeliveryMessage) => string);
  /** A missing stream is created. Without this option, the subjects must belong to an existing stream. */
  readonly stream?: {
    readonly name: string;
    readonly subjects: readonly string[];
    /** The duplicate window; must exceed the retry period of the outbox. Default: 2 h (server default: 2 minutes). */
    readonly duplicateWindowMs?: number | undefined;
    readonly replicas?: number | undefined;
  };
}

export const natsDestinationLimits = { duplicateWindowMs: 2 * 60 * 60_000 } as const;

/**
 * A destination that publishes to JetStream, by URL or with your connection.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { natsDestination } from 'millrace/destinations/nats';
 *
 * await using nats = await natsDestination('nats://localhost:4222', {
 *   subject: ({ eventType }) => `payments.${eventType}`,
 *   stream: { name: 'payments', subjects: ['payments.>'] },
 * });
 * const { deliver } = createDelivery({ destinations: { 'nats:payments': nats } });
 */
export async function natsDestination(
  target: string | Driver,
  options: NatsDestinationOptions,
): Promise<Destination & AsyncDisposable> {
  const { subject, stream, timeoutMs = natsDefaults.timeoutMs } = options;
  const { jetstream, jetstreamManager } = await loadDriver(
    '@nats-io/jetstream',
    () => import('@nats-io/jetstream'),
  );
  const { headers } = await loadDriver(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  );
  const connection = await connectNats(target, options);

  async function createStream({ name, subjects, ...given }: NonNullable<typeof stream>) {
    const windowMs = given.duplicateWindowMs ?? natsDestinationLimits.duplicateWindowMs;
    await connection.run(async (driver) => {
      const manager = await jetstreamManager(driver, { timeout: timeoutMs });
      const known = await manager.streams.info(name).catch((error: unknown) => {
        if (error instanceof Error && /stream not found/i.test(error.message)) return undefined;
        throw error;
      });
      if (known !== undefined) return;
      await manager.streams.add({
        name,
        subjects: [...subjects],
        duplicate_window: windowMs * 1_000_000,
        num_replicas: given.replicas ?? 1,
      });
    });
  }

  async function publish(message: DeliveryMessage, key: string): Promise<DeliveryOutcome> {
    const chosen = typeof subject === 'string' ? subject : subject(message);
    if (chosen !== subject && !isOwnSubject(chosen, stream?.subjects)) {
      return { kind: 'dead', error: `the subject '${cleanText(chosen, 100)}' is not allowed` };
    }
    const sent = headers();
    for (const [name, value] of Object.entries(headersOf(message))) sent.set(name, value);
    const ack = await connection.run((driver) =>
      jetstream(driver).publish(
        chosen,
        JSON.stringify(message.payload),
        // Retries of the driver would only hide that no stream covers the subject.
        { msgID: encodeURIComponent(key), headers: sent, timeout: timeoutMs, retries: 0 },
      ),
    );
    return { kind: 'sent', receipt: `${ack.stream}:${ack.seq}` };
  }

  try {
    if (stream !== undefined) await createStream(stream);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
  const send: Destination = async (message, { idempotencyKey, signal }) => {
    signal.throwIfAborted();
    return untilAborted(publish(message, idempotencyKey).catch(outcomeOfNats), signal);
  };
  return Object.assign(send, {
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  });
}

/** Parts of the subject may come from tenants, for example the type of an event. */
function isOwnSubject(subject: string, patterns: readonly string[] = ['>']): boolean {
  try {
    validateSubject(subject);
  } catch {
    return false;
  }
  const [root = ''] = subject.split('.', 1);
  if (/^[$_]/.test(root) || root === subjectRootDefault) return false;
  return patterns.some((pattern) => matchSubject(pattern, subject));
}

/** Percent-encodes header values, because NATS headers allow neither line breaks nor all of Unicode. */
function headersOf(message: DeliveryMessage): Record<string, string> {
  const given = {
    'event-type': message.eventType,
    'source-stream': message.sourceStreamId,
    'tenant-id': message.tenantId,
    'correlation-id': message.correlationId,
    'occurred-at': occurredAtOf(message),
  };
  const entries = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, encodeURI(value.toWellFormed())] as const],
  );
  return Object.fromEntries(entries);
}

/** A payload above the server's limit is permanent; all other errors are worth a retry. */
function outcomeOfNats(error: unknown): DeliveryOutcome {
  const text = errorText(error);
  if (/max(imum)?[ _]payload/i.test(text)) return { kind: 'dead', error: text };
  const isClosed = hasCode(error, 'STORE_CLOSED');
  return { kind: 'retry', error: text, ...(isClosed ? {} : { ambiguous: true }) };
}
