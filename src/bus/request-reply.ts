// Requests are ordinary messages; the replies arrive in a stream that belongs to this bus.

import { randomUUID } from 'node:crypto';
import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { RequestOptions } from './bus.ts';
import type { BusEngine, StoredEntry } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { BusMessage, NewMessage, Published } from './bus-message.ts';
import { checkInteger } from './check-bus.ts';
import { replySubject } from './dead-letter.ts';
import type { MessageCodec } from './message-codec.ts';

export interface Requests extends AsyncDisposable {
  request(message: NewMessage, options: RequestOptions): Promise<BusMessage>;
}

interface Listener {
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
  const pending = new Map<string, (message: BusMessage) => void>();
  let listener: Promise<Listener> | undefined;

  async function listen(): Promise<Listener> {
    const request = { from: 'start', isLive: true, batchMax: 100 } as const;
    const batches = await engine.read(replyTo, { ...request, signal: closing.signal });
    return { loop: receive(batches) };
  }

  async function receive(batches: AsyncIterable<readonly StoredEntry[]>): Promise<void> {
    try {
      for await (const batch of batches) {
        for (const entry of batch) resolveRequest(entry);
        // A reply is used once.
        const received = batch.map(({ sequence }) => sequence);
        await engine.remove(replyTo, received);
      }
    } catch (err) {
      if (!hasCode(err, 'ABORTED')) observer.log?.error({ err }, 'receiving bus replies failed');
    }
    // The next request starts another listener.
    listener = undefined;
  }

  function resolveRequest(entry: StoredEntry): void {
    const decoded = codec.decode(entry);
    if (decoded.kind === 'bad') return;
    pending.get(decoded.message.causationId ?? '')?.(decoded.message);
  }

  return {
    async request(message, { timeoutMs = limits.requestTimeoutMsDefault, signal }) {
      checkInteger('timeoutMs', timeoutMs, { min: 1, max: limits.requestTimeoutMsMax });
      if (signal?.aborted === true) throw aborted(signal);
      const over = new AbortController();
      const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
      const id = message.id ?? randomUUID();
      const reply = new Promise<BusMessage>((resolve) => void pending.set(id, resolve));
      const expiresAt = new Date(clock.now() + timeoutMs);
      try {
        listener ??= listen().catch((error: unknown) => {
          listener = undefined;
          throw error;
        });
        await listener;
        await context.publish({ ...message, id }, { replyTo, expiresAt });
        const late = clock.sleep(timeoutMs, either).then(() => {
          const text = `no reply to the request on '${message.subject}' within ${timeoutMs} ms`;
          throw new MillraceError('BUS_NO_REPLY', text, { details: { subject: message.subject } });
        });
        return await Promise.race([reply, late]);
      } finally {
        pending.delete(id);
        over.abort('over');
      }
    },
    async [Symbol.asyncDispose]() {
      if (listener === undefined) return;
      const { loop } = await listener;
      closing.abort();
      await loop;
      await engine.deleteStream(replyTo);
    },
  };
}
