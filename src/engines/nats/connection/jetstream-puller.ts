// Pulls messages from a consumer: waits for the first message, then takes the available ones. A request that found
// nothing stays open for a moment, so that a caller in a loop reuses it. Otherwise servers up to 2.10 redeliver an acked
// message if a request expires at the moment when another message becomes due again.

import type { Msg } from '@nats-io/transport-node';
import { busLimits } from '../../../bus/bus-limits.ts';
import { aborted } from '../../../foundation/clock.ts';
import type { MillraceError } from '../../../foundation/error.ts';
import { natsUnavailable } from './connection.ts';
import { consumerOf, isDelivery } from './delivered-message.ts';
import {
  isApiError,
  apiErrorCodes,
  type ConsumerInfo,
  type Inbox,
  type JetStreamWire,
} from './jetstream-wire.ts';

export interface PullSource {
  readonly stream: string;
  readonly consumer: string;
}

interface TakeRequest {
  readonly batch: number;
  /** How long to wait for the first message; 0 returns only available messages. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface Pulled {
  readonly message: Msg;
  readonly atMs: number;
}

/** Serves one caller at a time. */
export interface Puller {
  readonly isBusy: boolean;
  /** Undefined: the consumer does not exist. Rejects with `ABORTED` if no message arrived before. */
  take(order: TakeRequest): Promise<readonly Pulled[] | undefined>;
  /** Resolves when the server sends no more messages. */
  close(): Promise<void>;
}

interface PullBody {
  readonly batch: number;
  readonly no_wait?: boolean;
  /** The server ends the request before the message that would exceed this size. */
  readonly max_bytes?: number;
  /** The duration of the request, in nanoseconds. */
  readonly expires?: number;
}

/** Without a message for this long, the puller starts to wait. */
const idleMs = 10;
/** Without another message for this long on an open request, the group is at its limit. */
const pauseMs = 50;
/** Without any message for this long, the consumer is empty. */
const silenceMs = 1_000;
/** How long a request stays open after its caller has stopped waiting. */
const lingerMs = 100;
const checkEveryMs = 5_000;
/** Added to the wait of the caller: the server closes the request this much later. */
const spareMs = 60_000;
const msToNs = 1_000_000;

export function createPuller(
  wire: JetStreamWire,
  sources: {
    readonly from: PullSource;
    /** A second consumer that is pulled from during a wait. */
    readonly second?: PullSource | undefined;
  },
  release: (messages: readonly Msg[]) => void,
): Puller {
  const { from, second } = sources;
  const open = new Map<string, { readonly source: PullSource; left: number }>();
  let stash: Pulled[] = [];
  let inbox: Inbox | undefined;
  let isBusy = false;
  let isMissing = false;
  let failure: MillraceError | undefined;
  let deadlineMs = 0;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let done = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => done.resolve();

  async function take({
    batch,
    waitMs,
    signal,
  }: TakeRequest): Promise<readonly Pulled[] | undefined> {
    clearTimeout(timer);
    isMissing = false;
    failure = undefined;
    done = Promise.withResolvers();
    deadlineMs = performance.now() + waitMs;
    // Only a new request returns the available messages, and an open request must not ask for more than fits.
    if ((open.get(from.consumer)?.left ?? 0) > (waitMs === 0 ? 0 : batch)) await close();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted || stash.length > 0) stop();
    else await begin(batch, waitMs).catch(fail);
    await done.promise;
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
    await end(waitMs, signal);
    return taken(batch, signal);
  }

  function taken(batch: number, signal: AbortSignal): readonly Pulled[] | undefined {
    if (stash.length > 0) return stash.splice(0, batch);
    if (failure !== undefined) throw failure;
    if (signal.aborted) throw aborted(signal);
    return isMissing ? undefined : [];
  }

  async function begin(batch: number, waitMs: number): Promise<void> {
    inbox ??= await wire.listen(onMessage, onLost);
    if (!open.has(from.consumer)) {
      const max_bytes = busLimits.batchBytesMax;
      await request(from, { batch, no_wait: true, max_bytes, ...expiry(waitMs) });
    }
    if (waitMs === 0) after(idleMs, checkLimit);
    else after(idleMs, wait);
  }

  /** Closing also distinguishes a silent server from an empty consumer. */
  async function end(waitMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || isMissing || failure !== undefined) void close();
    else if (waitMs === 0 && open.size > 0) await close();
    else after(lingerMs, close);
  }

  async function request(source: PullSource, body: PullBody): Promise<void> {
    if (inbox === undefined) return;
    open.set(source.consumer, { source, left: body.batch });
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${source.stream}.${source.consumer}`;
    const reply = `${inbox.subject}.${source.consumer}`;
    await wire.send([{ subject, data: JSON.stringify(body) }], reply);
  }

  function onMessage(message: Msg): void {
    if (isDelivery(message)) onDelivery(message);
    else onStatus(message);
  }

  function onDelivery(message: Msg): void {
    stash.push({ message, atMs: performance.now() });
    const consumer = consumerOf(message.reply ?? '');
    const pending = open.get(consumer);
    if (pending !== undefined) {
      pending.left -= 1;
      if (pending.left === 0) open.delete(consumer);
    }
    if (!isBusy) after(lingerMs, close);
    else if (open.has(from.consumer)) after(pauseMs, stop);
    else stop();
  }

  function onStatus({ subject, headers }: Msg): void {
    const consumer = subject.slice(subject.lastIndexOf('.') + 1);
    const { code = 0, description = '' } = headers ?? {};
    // Status 100 is a heartbeat.
    if (code === 100) return;
    open.delete(consumer);
    if (code === 503 || /consumer deleted/i.test(description)) {
      isMissing = true;
      stop();
    } else if (code === 409 && /maxbytes/i.test(description)) {
      onEnd();
    } else if (code !== 404 && code !== 408) {
      fail(natsUnavailable(`${code} ${description}`));
    } else if (consumer === from.consumer) {
      onEnd();
    }
  }

  /** Newer servers close a request that found nothing immediately, before it expires. */
  function onEnd(): void {
    const leftMs = Math.floor(deadlineMs - performance.now());
    if (!isBusy || stash.length > 0 || leftMs <= 0) {
      stop();
      return;
    }
    request(from, { batch: 1, ...expiry(leftMs) }).catch(fail);
    wait();
  }

  function wait(): void {
    const leftMs = Math.max(1, Math.floor(deadlineMs - performance.now()));
    after(leftMs, stop);
    // A server does not reply to a request for a consumer that does not exist.
    if (performance.now() - checkedMs > checkEveryMs) {
      checkedMs = performance.now();
      info(from).catch(fail);
    }
    if (second === undefined || open.has(second.consumer)) return;
    request(second, { batch: 1, ...expiry(leftMs) }).catch(fail);
  }

  /** The server sends nothing at all while the group is at its limit. */
  async function checkLimit(): Promise<void> {
    try {
      const { num_ack_pending: pending, config } = await info(from);
      if (stash.length > 0) return;
      if (pending >= config.max_ack_pending) stop();
      else after(silenceMs, stop);
    } catch (error) {
      fail(error);
    }
  }

  function info({ stream, consumer }: PullSource): Promise<ConsumerInfo> {
    return wire.request<ConsumerInfo>(`CONSUMER.INFO.${stream}.${consumer}`);
  }

  function after(ms: number, then: () => void | Promise<void>): void {
    clearTimeout(timer);
    timer = setTimeout(() => void then(), ms);
  }

  function fail(error: unknown): void {
    if (isApiError(error, apiErrorCodes.consumerNotFound, apiErrorCodes.streamNotFound))
      isMissing = true;
    else failure ??= natsUnavailable(error);
    stop();
  }

  function onLost(error: MillraceError): void {
    clearTimeout(timer);
    open.clear();
    fail(error);
  }

  /** A request without a listener stays open on the server until it checks: a CONSUMER.INFO request makes it check. */
  async function close(): Promise<void> {
    clearTimeout(timer);
    const left = [...open.values()];
    const closing = inbox?.close();
    inbox = undefined;
    open.clear();
    const results = await Promise.allSettled([closing, ...left.map(({ source }) => info(source))]);
    for (const result of results) if (result.status === 'rejected') fail(result.reason);
    if (isBusy || stash.length === 0) return;
    release(stash.map(({ message }) => message));
    stash = [];
  }

  return {
    get isBusy() {
      return isBusy;
    },
    async take(order) {
      isBusy = true;
      try {
        return await take(order);
      } finally {
        isBusy = false;
      }
    },
    close,
  };
}

function expiry(ms: number): { readonly expires?: number } {
  return ms > 0 ? { expires: (ms + spareMs) * msToNs } : {};
}
