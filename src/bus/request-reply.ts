// Requests: published like any message; the answers come back on a stream of this bus alone.

import { randomUUID } from 'node:crypto';
import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { RequestOptions } from './bus.ts';
import type { BusEngine, StoredEntry } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { BusMessage, NewMessage, Published } from './bus-message.ts';
import { wholeNumber } from './check-bus.ts';
import { replySubject } from './dead-letter.ts';
import type { MessageCodec } from './message-codec.ts';

export interface Requests extends AsyncDisposable {
  request(message: NewMessage, options: RequestOptions): Promise<BusMessage>;
}

interface Listening {
  /** Ends when the bus is closed. */
  readonly loop: Promise<void>;
}

export function createRequests(context: {
  readonly engine: BusEngine;
  readonly codec: MessageCodec;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly publish: (
    message: NewMessage,
    request: { readonly replyTo: string; readonly expiresAt: Date },
  ) => Promise<Published>;
}): Requests {
  const { engine, codec, clock, observer } = context;
  const replyTo = replySubject(randomUUID());
  const closing = new AbortController();
  const awaited = new Map<string, (message: BusMessage) => void>();
  let listening: Promise<Listening> | undefined;

  async function listen(): Promise<Listening> {
    const request = { from: 'start', isLive: true, batchMax: 100 } as const;
    const batches = await engine.read(replyTo, { ...request, signal: closing.signal });
    return { loop: hear(batches) };
  }

  async function hear(batches: AsyncIterable<readonly StoredEntry[]>): Promise<void> {
    try {
      for await (const batch of batches) {
        for (const entry of batch) answer(entry);
        // Answers are of use once: what was heard need not be kept.
        const heard = batch.map(({ sequence }) => sequence);
        await engine.remove(replyTo, heard);
      }
    } catch (err) {
      if (!hasCode(err, 'ABORTED')) observer.log?.error({ err }, 'bus replies are not heard');
    }
    // The next request listens anew.
    listening = undefined;
  }

  function answer(entry: StoredEntry): void {
    const decoded = codec.decode(entry);
    if (decoded.kind === 'bad') return;
    awaited.get(decoded.message.causationId ?? '')?.(decoded.message);
  }

  return {
    async request(message, { timeoutMs = limits.requestTimeoutMsDefault, signal }) {
      wholeNumber('timeoutMs', timeoutMs, { min: 1, max: limits.requestTimeoutMsMax });
      if (signal?.aborted === true) throw aborted(signal);
      const over = new AbortController();
      const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
      const id = message.id ?? randomUUID();
      const reply = new Promise<BusMessage>((resolve) => void awaited.set(id, resolve));
      const expiresAt = new Date(clock.now() + timeoutMs);
      try {
        listening ??= listen().catch((error: unknown) => {
          listening = undefined;
          throw error;
        });
        await listening;
        await context.publish({ ...message, id }, { replyTo, expiresAt });
        const late = clock.sleep(timeoutMs, either).then(() => {
          const text = `nobody answered on '${message.subject}' within ${timeoutMs} ms`;
          throw new MillraceError('BUS_NO_REPLY', text, { details: { subject: message.subject } });
        });
        return await Promise.race([reply, late]);
      } finally {
        awaited.delete(id);
        over.abort('over');
      }
    },
    async [Symbol.asyncDispose]() {
      if (listening === undefined) return;
      const { loop } = await listening;
      closing.abort();
      await loop;
      await engine.deleteStream(replyTo);
    },
  };
}
