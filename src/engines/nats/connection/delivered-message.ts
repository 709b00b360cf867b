// A message that a JetStream consumer delivered: its reply subject names the consumer, the sequence and the delivery count.

import type { Msg } from '@nats-io/transport-node';
import type { StoredEntry } from '../../../bus/bus-engine.ts';

export interface DeliveredMessage {
  readonly entry: StoredEntry;
  readonly sequence: number;
  readonly deliveryCount: number;
  /** Counts the deliveries of the consumer, from 1. */
  readonly consumerSequence: number;
  /** The number of messages that the consumer has not delivered yet. */
  readonly pending: number;
  /** The subject to which the ack of this message is published. */
  readonly ackSubject: string;
  /** The server's id, `<subject>:<id>`; `''`: another program published it. */
  readonly messageId: string;
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<…>.<ns>.<pending>`; newer servers have two tokens more. */
const tokensBefore210 = 9;

export const metaHeader = 'Millrace-Meta';

export function isDelivery({ reply }: Msg): boolean {
  return reply?.startsWith('$JS.ACK.') === true;
}

export function consumerOf(ackSubject: string): string {
  return fieldsOf(ackSubject)[0] ?? '';
}

/** Returns the same id for each delivery of a message to a group. */
export function messageKeyOf(ackSubject: string): string {
  const [consumer, , sequence] = fieldsOf(ackSubject);
  return `${consumer} ${sequence}`;
}

function fieldsOf(ackSubject: string): readonly string[] {
  const tokens = ackSubject.split('.');
  return tokens.slice(tokens.length === tokensBefore210 ? 3 : 5);
}

export function toDelivered(
  message: Msg,
  layout: { fromNats(subject: string): string | undefined },
): DeliveredMessage {
  const { subject, data, headers, reply: ackSubject = '' } = message;
  const [, deliveries = '1', sequence = '0', count = '0', ns = '0', pending = '0'] =
    fieldsOf(ackSubject);
  const meta = headers?.get(metaHeader);
  return {
    entry: {
      subject: layout.fromNats(subject) ?? subject,
      sequence,
      position: sequence,
      storedAtMs: Number(BigInt(ns) / 1_000_000n),
      data,
      meta: meta === '' ? undefined : meta,
    },
    sequence: Number(sequence),
    deliveryCount: Number(deliveries),
    consumerSequence: Number(count),
    pending: Number(pending),
    ackSubject,
    messageId: headers?.get('Nats-Msg-Id') ?? '',
  };
}
