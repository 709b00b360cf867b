// Converts messages to envelopes and bytes, and back.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from '../contracts/apply-schema.ts';
import { matchSubject, validatePattern } from '../contracts/subject-match.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import { traceOf } from '../foundation/observer.ts';
import { isSealed } from '../store/erasure.ts';
import type { EngineEntry, StoredEntry } from './bus-engine.ts';
import type { BusMessage, NewMessage } from './bus-message.ts';
import { invalid } from './check-bus.ts';
import type { DeadLetterCause } from './dead-letter.ts';
import {
  decodeTransportEnvelope,
  encodeTransportEnvelope,
  isJson,
  jsonContentType,
  type TransportEnvelope,
} from './transport-envelope.ts';

/** Subject or pattern → the schema of its payloads, checked on publish and on delivery. */
export type PayloadSchemas = Readonly<Record<string, StandardSchemaV1>>;

type Decoded =
  | { readonly kind: 'message'; readonly message: BusMessage; readonly expiresAtMs: number }
  | { readonly kind: 'bad'; readonly cause: DeadLetterCause; readonly reason: string };

export interface MessageCodec {
  encode(message: NewMessage, request?: RequestFields): EngineEntry;
  decode(entry: StoredEntry): Decoded;
}

interface RequestFields {
  readonly replyTo: string;
  readonly expiresAt: Date;
}

export function createMessageCodec(options: {
  readonly clock: Clock;
  readonly payloads?: PayloadSchemas | undefined;
}): MessageCodec {
  const { clock } = options;
  const ids = createIds({ clock });
  const checkPayload = payloadCheck(options.payloads ?? {});

  return {
    encode(message, request) {
      const { subject, contentType = jsonContentType } = message;
      const { trace } = message;
      const envelope = present({
        version: 1 as const,
        id: message.id ?? ids.next(),
        subject,
        time: new Date(clock.now()).toISOString(),
        contentType: contentType === jsonContentType ? undefined : contentType,
        schemaVersion: message.schemaVersion,
        tenant: message.tenant,
        correlationId: message.correlationId,
        causationId: message.causationId,
        traceparent: trace?.traceparent,
        tracestate: trace?.tracestate,
        replyTo: request?.replyTo,
        expiresAt: request?.expiresAt.toISOString(),
        headers: message.headers,
        payload: encodedPayload(contentType, message.payload),
      }) as TransportEnvelope;
      const data = encodeTransportEnvelope(envelope);
      // An archived message was checked when it was first published.
      if (!isSealed(message.payload)) checkPayload(subject, message.payload);
      return { subject, id: envelope.id, data };
    },
    decode(entry) {
      // A dead letter, and a replayed one, is in another stream than the one it was published to.
      const anySubject = /^_(?:dead|redo)\./.test(entry.subject);
      try {
        const envelope = decodeTransportEnvelope(entry.data);
        if (!anySubject && envelope.subject !== entry.subject) {
          const reason = `the envelope names another subject than its stream: ${envelope.subject}`;
          return { kind: 'bad', cause: 'malformed', reason };
        }
        const message = toMessage(envelope, entry);
        checkPayload(message.subject, message.payload);
        const expiresAtMs = Date.parse(envelope.expiresAt ?? '');
        return { kind: 'message', message, expiresAtMs: expiresAtMs || Number.POSITIVE_INFINITY };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        // A schema that throws rejects the payload; it must not end the consumer.
        const cause = hasCode(error, 'ENVELOPE_INVALID') ? 'malformed' : 'payload-invalid';
        return { kind: 'bad', cause, reason };
      }
    },
  };
}

/** Applies the schema of the exact subject and the schemas of all patterns that match it. */
function payloadCheck(schemas: PayloadSchemas): (subject: string, payload: unknown) => void {
  const bySubject = new Map<string, StandardSchemaV1>();
  const byPattern: (readonly [string, StandardSchemaV1])[] = [];
  for (const [pattern, schema] of Object.entries(schemas)) {
    validatePattern(pattern);
    if (/[*>]/.test(pattern)) byPattern.push([pattern, schema]);
    else bySubject.set(pattern, schema);
  }
  return (subject, payload) => {
    const exact = bySubject.get(subject);
    if (exact !== undefined) applySchema(subject, exact, payload);
    for (const [pattern, schema] of byPattern) {
      if (matchSubject(pattern, subject)) applySchema(subject, schema, payload);
    }
  };
}

function encodedPayload(contentType: string, payload: unknown): unknown {
  if (isJson(contentType)) return payload;
  if (payload instanceof Uint8Array) return Buffer.from(payload).toString('base64');
  throw invalid('payload', `must be a Uint8Array because its content type is ${contentType}`);
}

function toMessage(envelope: TransportEnvelope, entry: StoredEntry): BusMessage {
  const { contentType = jsonContentType, payload } = envelope;
  return {
    id: envelope.id,
    subject: envelope.subject,
    sequence: entry.sequence,
    position: entry.position,
    time: new Date(envelope.time),
    storedAt: new Date(entry.storedAtMs),
    headers: envelope.headers ?? {},
    tenant: envelope.tenant,
    correlationId: envelope.correlationId,
    causationId: envelope.causationId,
    trace: traceOf(envelope),
    contentType,
    schemaVersion: envelope.schemaVersion,
    replyTo: envelope.replyTo,
    // Copied, so that every engine returns a plain Uint8Array.
    payload: isJson(contentType) ? payload : new Uint8Array(Buffer.from(String(payload), 'base64')),
  };
}

/** Omits undefined fields, as JSON does. */
function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
