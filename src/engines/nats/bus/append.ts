// Publishes batches to the streams of the bus, with all replies over one inbox.

import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import type { BusParts, BusStreams } from './streams.ts';
import { natsUnavailable } from '../connection/connection.ts';
import { metaHeader } from '../connection/delivered-message.ts';
import { hasNoResponders, type ApiError, type Outgoing } from '../connection/jetstream-wire.ts';

interface PublishAck {
  readonly seq: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

export type Append = (
  entries: readonly EngineEntry[],
  options: { readonly dedupeWindowMs: number },
) => Promise<readonly Appended[]>;

/** The maximum number of bytes in flight. */
const inFlightBytesMax = 4_000_000;
/** The first retry creates streams that the server has lost. */
const triesMax = 3;

export function createAppend({ wire, layout }: BusParts, streams: BusStreams): Append {
  function outgoing({ subject, id, data, meta }: EngineEntry): Outgoing {
    const headers = wire.headers();
    headers.set('Nats-Msg-Id', messageIdOf({ subject, id }));
    if (meta !== undefined) headers.set(metaHeader, meta);
    return { subject: layout.toNats(subject), data, headers };
  }

  /** Returns undefined if no stream covers the subject. */
  async function publish(entries: readonly EngineEntry[]): Promise<(Appended | undefined)[]> {
    const replies = await wire.requestAll(entries.map(outgoing));
    return replies.map((reply) => {
      if (hasNoResponders(reply)) return undefined;
      const { seq, duplicate = false, error } = reply.json<PublishAck>();
      // A full stream replies with 4xx, but a retry may succeed.
      if (error !== undefined)
        throw natsUnavailable(error.description ?? 'the server rejected the message');
      return { sequence: String(seq), isDuplicate: duplicate };
    });
  }

  async function appendSome(
    entries: readonly EngineEntry[],
    dedupeWindowMs: number,
  ): Promise<readonly Appended[]> {
    const subjects = new Set(entries.map(({ subject }) => subject));
    const appended = new Map<EngineEntry, Appended>();
    for (let round = 0; round < triesMax; round += 1) {
      for (const subject of subjects) await streams.ensure(subject, dedupeWindowMs);
      const left = entries.filter((entry) => !appended.has(entry));
      for (const [at, result] of (await publish(left)).entries()) {
        if (result !== undefined) appended.set(left[at] as EngineEntry, result);
      }
      if (appended.size === entries.length) {
        return entries.map((entry) => appended.get(entry) as Appended);
      }
      streams.forget();
    }
    throw natsUnavailable('no stream covers the published subjects');
  }

  return async (entries, { dedupeWindowMs }) => {
    const appended: Appended[] = [];
    const sizeOf = ({ data }: EngineEntry): number => data.length;
    for (const batch of batchesOf(entries, { sizeMax: inFlightBytesMax, sizeOf })) {
      appended.push(...(await appendSome(batch, dedupeWindowMs)));
    }
    return appended;
  };
}

/** The server dedupes ids per stream, the bus per subject. */
export function messageIdOf({ subject, id }: Pick<EngineEntry, 'subject' | 'id'>): string {
  return `${subject}:${encodeURIComponent(id.toWellFormed())}`;
}
