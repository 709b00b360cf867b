// What a consumer of JetStream hands out: the message, and in its reply subject who, what and how often.

import type { Msg } from '@nats-io/transport-node';
import type { StoredEntry } from '../../../bus/bus-engine.ts';
import { metaHeader } from '../bus/append.ts';
import type { BusLayout } from '../bus/layout.ts';

export interface DeliveredMessage {
  readonly entry: StoredEntry;
  readonly sequence: number;
  readonly deliveryCount: number;
  /** Counts what its consumer has handed out, from 1 on. */
  readonly consumerSequence: number;
  /** How many the consumer has still to hand out for the first time. */
  readonly pending: number;
  /** What settles it is sent there. */
  readonly ackSubject: string;
  /** As the server knows it, `<subject>:<id>`; `''`: it was stored past the bus. */
  readonly messageId: string;
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<…>.<ns>.<pending>`; newer: two more in front. */
const tokensOfOld = 9;

export function isDelivery({ reply }: Msg): boolean {
  return reply?.startsWith('$JS.ACK.') === true;
}

export function consumerOf(ackSubject: string): string {
  return fieldsOf(ackSubject)[0] ?? '';
}

/** The same for each delivery of a message to a group. */
export function messageKeyOf(ackSubject: string): string {
  const [consumer, , sequence] = fieldsOf(ackSubject);
  return `${consumer} ${sequence}`;
}

function fieldsOf(ackSubject: string): readonly string[] {
  const tokens = ackSubject.split('.');
  return tokens.slice(tokens.length === tokensOfOld ? 3 : 5);
}

export function toDelivered(message: Msg, layout: BusLayout): DeliveredMessage {
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
