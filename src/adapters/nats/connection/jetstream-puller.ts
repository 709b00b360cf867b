// Pulls messages off a consumer: waits for the first one, then takes what is there. A request that found
// nothing stays open for a moment, so that who asks in a loop goes on waiting with the same one: servers
// up to 2.10 hand an acked message out again when a request ends just as another message is due again.

import type { Msg } from '@nats-io/transport-node';
import { aborted } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { ConsumerInfo } from '../bus/consumers.ts';
import { consumerOf, isDelivery } from './delivered-message.ts';
import {
  busUnavailable,
  isRefused,
  refusals,
  type Inbox,
  type JetStreamWire,
} from './jetstream-wire.ts';

export interface PullSource {
  readonly stream: string;
  readonly consumer: string;
}

interface TakeOrder {
  readonly batch: number;
  /** 0: what is there now. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface Pulled {
  readonly message: Msg;
  readonly atMs: number;
}

/** One caller at a time. */
export interface Puller {
  readonly isBusy: boolean;
  /** Undefined: a consumer is not there (any more). Rejects with `ABORTED` when nothing came before. */
  take(order: TakeOrder): Promise<readonly Pulled[] | undefined>;
  /** Resolves when the server sends no more. */
  close(): Promise<void>;
}

interface PullBody {
  readonly batch: number;
  readonly no_wait?: boolean;
  /** Nanoseconds. */
  readonly expires?: number;
}

/** Nothing came for so long: then it is a wait. */
const idleMs = 10;
/** Nothing more came for so long, and the request is open still: the group is at its limit. */
const pauseMs = 50;
/** Nothing came at all for so long, and nothing holds it up. */
const silenceMs = 1_000;
/** A request that nobody waits with any more is open for so long. */
const lingerMs = 100;
const checkEveryMs = 5_000;
/** The server's own end of a request, far behind ours. */
const spareMs = 60_000;
const msToNs = 1_000_000;

export function createPuller(
  wire: JetStreamWire,
  sources: {
    readonly from: PullSource;
    /** Looked after, too, as soon as a wait is one. */
    readonly beside?: PullSource | undefined;
  },
  giveBack: (messages: readonly Msg[]) => void,
): Puller {
  const { from, beside } = sources;
  const open = new Map<string, { readonly source: PullSource; left: number }>();
  let stash: Pulled[] = [];
  let inbox: Inbox | undefined;
  let isBusy = false;
  let isGone = false;
  let failure: MillraceError | undefined;
  let deadlineMs = 0;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let over = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => over.resolve();

  async function take({
    batch,
    waitMs,
    signal,
  }: TakeOrder): Promise<readonly Pulled[] | undefined> {
    clearTimeout(timer);
    isGone = false;
    failure = undefined;
    over = Promise.withResolvers();
    deadlineMs = performance.now() + waitMs;
    // Only a new question tells what is there now, and what was asked for must not be more than fits.
    if ((open.get(from.consumer)?.left ?? 0) > (waitMs === 0 ? 0 : batch)) await close();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted || stash.length > 0) stop();
    else await begin(batch, waitMs).catch(judge);
    await over.promise;
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
    await end(waitMs, signal);
    return taken(batch, signal);
  }

  function taken(batch: number, signal: AbortSignal): readonly Pulled[] | undefined {
    if (stash.length > 0) return stash.splice(0, batch);
    if (failure !== undefined) throw failure;
    if (signal.aborted) throw aborted(signal);
    return isGone ? undefined : [];
  }

  async function begin(batch: number, waitMs: number): Promise<void> {
    inbox ??= await wire.listen(onMessage, onLost);
    if (!open.has(from.consumer)) {
      await request(from, { batch, no_wait: true, ...expiry(waitMs) });
    }
    if (waitMs === 0) after(idleMs, inquire);
    else after(idleMs, wait);
  }

  /** Also tells a server that is silent from a consumer that is empty. */
  async function end(waitMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || isGone || failure !== undefined) void close();
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
    const under = open.get(consumer);
    if (under !== undefined) {
      under.left -= 1;
      if (under.left === 0) open.delete(consumer);
    }
    if (!isBusy) after(lingerMs, close);
    else if (open.has(from.consumer)) after(pauseMs, stop);
    else stop();
  }

  function onStatus({ subject, headers }: Msg): void {
    const consumer = subject.slice(subject.lastIndexOf('.') + 1);
    const { code = 0, description = '' } = headers ?? {};
    // A heartbeat.
    if (code === 100) return;
    open.delete(consumer);
    if (code === 503 || /consumer deleted/i.test(description)) {
      isGone = true;
      stop();
    } else if (code !== 404 && code !== 408) {
      judge(busUnavailable(`${code} ${description}`));
    } else if (consumer === from.consumer) {
      onEnd();
    }
  }

  /** Newer servers end a request that found nothing at once, whatever time it was given. */
  function onEnd(): void {
    const leftMs = Math.floor(deadlineMs - performance.now());
    if (!isBusy || stash.length > 0 || leftMs <= 0) {
      stop();
      return;
    }
    request(from, { batch: 1, ...expiry(leftMs) }).catch(judge);
    wait();
  }

  function wait(): void {
    const leftMs = Math.max(1, Math.floor(deadlineMs - performance.now()));
    after(leftMs, stop);
    // A server says nothing to who waits for a consumer that it does not have.
    if (performance.now() - checkedMs > checkEveryMs) {
      checkedMs = performance.now();
      info(from).catch(judge);
    }
    if (beside === undefined || open.has(beside.consumer)) return;
    request(beside, { batch: 1, ...expiry(leftMs) }).catch(judge);
  }

  /** Whoever is at the limit of the group gets no word at all. */
  async function inquire(): Promise<void> {
    try {
      const { num_ack_pending: pending, config } = await info(from);
      if (stash.length > 0) return;
      if (pending >= config.max_ack_pending) stop();
      else after(silenceMs, stop);
    } catch (error) {
      judge(error);
    }
  }

  function info({ stream, consumer }: PullSource): Promise<ConsumerInfo> {
    return wire.ask<ConsumerInfo>(`CONSUMER.INFO.${stream}.${consumer}`);
  }

  function after(ms: number, then: () => void | Promise<void>): void {
    clearTimeout(timer);
    timer = setTimeout(() => void then(), ms);
  }

  function judge(error: unknown): void {
    if (isRefused(error, refusals.consumerNotFound, refusals.streamNotFound)) isGone = true;
    else failure ??= error instanceof MillraceError ? error : busUnavailable(String(error));
    stop();
  }

  function onLost(error: MillraceError): void {
    clearTimeout(timer);
    open.clear();
    judge(error);
  }

  /** A request without a listener stays with the server until it looks: asking about the consumer makes it. */
  async function close(): Promise<void> {
    clearTimeout(timer);
    const left = [...open.values()];
    const closing = inbox?.close();
    inbox = undefined;
    open.clear();
    const answers = await Promise.allSettled([closing, ...left.map(({ source }) => info(source))]);
    for (const answer of answers) if (answer.status === 'rejected') judge(answer.reason);
    if (isBusy || stash.length === 0) return;
    giveBack(stash.map(({ message }) => message));
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
