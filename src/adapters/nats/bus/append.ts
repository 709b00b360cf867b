// Publishing to the bus's streams: all of a batch at once, answered over one inbox.

import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
import type { BusParts, BusStreams } from './streams.ts';
import { busUnavailable, isUnanswered, type ApiError, type Outgoing } from '../connection/jetstream-wire.ts';

interface PublishAck {
  readonly seq: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

export type Append = (
  entries: readonly EngineEntry[],
  options: { readonly dedupeWindowMs: number },
) => Promise<readonly Appended[]>;

export const metaHeader = 'Millrace-Meta';
/** On its way to the server at once. */
const bytesAtOnce = 4_000_000;
/** What the server has lost is made again at the first. */
const triesMax = 3;

export function createAppend({ wire, layout }: BusParts, streams: BusStreams): Append {
  function outgoing({ subject, id, data, meta }: EngineEntry): Outgoing {
    const headers = wire.headers();
    headers.set('Nats-Msg-Id', messageIdOf({ subject, id }));
    if (meta !== undefined) headers.set(metaHeader, meta);
    return { subject: layout.toNats(subject), data, headers };
  }

  /** Undefined where no stream takes it. */
  async function publish(entries: readonly EngineEntry[]): Promise<(Appended | undefined)[]> {
    const answers = await wire.exchange(entries.map(outgoing));
    return answers.map((answer) => {
      if (isUnanswered(answer)) return undefined;
      const { seq, duplicate = false, error } = answer.json<PublishAck>();
      // A stream that is full says 4xx, and is worth another try all the same.
      if (error !== undefined) throw busUnavailable(error.description ?? 'refused');
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
    throw busUnavailable('no stream takes what was published');
  }

  return async (entries, { dedupeWindowMs }) => {
    const appended: Appended[] = [];
    for (const chunk of chunksOf(entries)) {
      appended.push(...(await appendSome(chunk, dedupeWindowMs)));
    }
    return appended;
  };
}

/** The server knows ids by stream: the bus has them by subject. */
export function messageIdOf({ subject, id }: Pick<EngineEntry, 'subject' | 'id'>): string {
  return `${subject}:${encodeURIComponent(id.toWellFormed())}`;
}

function chunksOf(entries: readonly EngineEntry[]): readonly (readonly EngineEntry[])[] {
  const chunks: EngineEntry[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    if (bytes + entry.data.length > bytesAtOnce) {
      chunks.push([]);
      bytes = 0;
    }
    chunks.at(-1)?.push(entry);
    bytes += entry.data.length;
  }
  return chunks;
}
