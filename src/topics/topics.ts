// Topics: publish, update, read and follow messages by ntfy's rules, over a bus that several processes share.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { sweepLoop } from '../loops/sweep-loop.ts';
import type { AttachmentStore } from './file-attachments.ts';
import { buildMessage, changeMessage, pollRequest, type MessageFacts } from './build-message.ts';
import { detectContentType } from './detect-content-type.ts';
import { createMessageRate } from './message-rate.ts';
import { ntfyError } from './ntfy-problems.ts';
import {
  attachedName,
  textOfBody,
  unifiedPushText,
  useOfBody,
  type MessageText,
  type PeekedBody,
} from './publish-body.ts';
import type { PublishParams, PublishRules } from './publish-params.ts';
import { openScheduledMessages } from './scheduled-messages.ts';
import type { Since } from './read-params.ts';
import type { NamedTemplate } from './templates/named-templates.ts';
import type { TopicBus } from './topic-bus.ts';
import { batchOf, createTopicHub, type TopicReader } from './topic-hub.ts';
import { createTopicLog, type KeptMessages } from './topic-log.ts';
import { newMessageId, type TopicAttachment, type TopicMessage } from './topic-message.ts';
import { createKnownTopics, reservedTopics } from './topic-name.ts';
import {
  createVisitorBook,
  notifyLimits,
  type NotifyLimits,
  type VisitorBook,
} from './visitor-limits.ts';

export interface TopicsOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  readonly limits?: Partial<NotifyLimits> | undefined;
  /** Names that are not allowed as topics, in addition to those that ntfy and the product use. */
  readonly reserved?: readonly string[] | undefined;
  /** By name, for `X-Template`. */
  readonly templates?: Readonly<Record<string, NamedTemplate>> | undefined;
  /** Absent: files are rejected. */
  readonly attachments?: AttachmentStore | undefined;
  /** Where clients reach this server, without a slash at the end. */
  readonly baseUrl?: string | (() => string | undefined) | undefined;
  /** Absent: e-mail is rejected. */
  readonly sendEmail?: ((mail: NotifyEmail) => Promise<void>) | undefined;
  /** Called with each published message, to wake phones. */
  readonly forward?: ((message: TopicMessage) => void) | undefined;
}

export interface NotifyEmail {
  readonly to: string;
  readonly message: TopicMessage;
  readonly sender: string;
}

export interface TopicBody extends PeekedBody {
  /** The whole body, including the bytes that were read for `head`. */
  all(): AsyncIterable<Uint8Array>;
  readonly contentLength: number | undefined;
}

export interface PublishRequest {
  readonly topic: string;
  readonly params: PublishParams;
  readonly body: TopicBody;
  /** The visitor whose limits apply. */
  readonly visitor: string;
  /** The name of the authenticated user: a file belongs to the data subject `notify:user:<name>`. */
  readonly user?: string | undefined;
  /** True: neither requests nor messages count against limits. */
  readonly isExempt: boolean;
}

export interface ReadRequest {
  readonly topics: readonly string[];
  readonly since: Since;
  readonly withScheduled: boolean;
}

export interface Topics extends AsyncDisposable {
  readonly limits: NotifyLimits;
  readonly visitors: VisitorBook;
  readonly rules: PublishRules;
  readonly baseUrl: string | undefined;
  readonly attachments: AttachmentStore | undefined;
  readonly reserved: readonly string[];
  /** Throws if the name is not allowed. */
  touch(topic: string, visitor: string): void;
  publish(request: PublishRequest): Promise<TopicMessage>;
  change(
    event: 'message_delete' | 'message_clear',
    change: Pick<PublishRequest, 'isExempt' | 'topic' | 'visitor'> & {
      readonly sequenceId: string;
    },
  ): Promise<TopicMessage>;
  read(request: ReadRequest): Promise<readonly TopicMessage[]>;
  /** Calls `opened` once no message can be missed, then delivers stored messages, then live ones. */
  follow(reader: TopicReader, request: ReadRequest, opened: () => void): Promise<Disposable>;
  /** Ends all readers; their clients reconnect, here or elsewhere. */
  cut(): void;
  /** Ends the readers that match. */
  cutThose(matches: (reader: TopicReader) => boolean): void;
  readonly published: number;
  /** Over the last minutes, as ntfy reports it. */
  readonly publishedPerSecond: number;
  readonly readers: number;
}

const sweepMs = 60_000;

/**
 * Topics over a bus, for programs that publish and read without HTTP. `millrace start` serves them over ntfy's API.
 *
 * @example
 * import { openTopics } from 'millrace/topics';
 * import { openSqlite } from 'millrace/engines/sqlite';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using topics = await openTopics(db.bus);
 * const stored = await topics.read({ topics: ['alerts'], since: { kind: 'all' }, withScheduled: false });
 * console.log(stored.map(({ message }) => message));
 */
export async function openTopics(bus: TopicBus, options: TopicsOptions = {}): Promise<Topics> {
  const { clock = systemClock, observer = silentObserver, attachments } = options;
  const baseUrlNow = (): string | undefined =>
    typeof options.baseUrl === 'function' ? options.baseUrl() : options.baseUrl;
  const limits: NotifyLimits = { ...notifyLimits, ...options.limits };
  const visitors = createVisitorBook(limits, clock);
  const reserved = [...reservedTopics, ...(options.reserved ?? [])];
  const known = createKnownTopics({ visitors, clock, topicsMax: limits.topicsMax, reserved });
  const log = createTopicLog(bus, { clock, keptMs: limits.messageExpiryMs });
  await using opened = new AsyncDisposableStack();
  const hub = opened.use(createTopicHub(bus, { clock, observer }));
  const scheduled = opened.use(
    await openScheduledMessages(bus, {
      log,
      clock,
      delayMsMax: limits.delayMsMax,
      onDelivered: (message) => options.forward?.(message),
    }),
  );
  const all = opened.move();
  if (attachments !== undefined) {
    const onFailure = (err: unknown): void =>
      observer.log?.warn({ err }, 'attachment sweep failed');
    all.use(sweepLoop(() => attachments.sweep(), { everyMs: sweepMs, clock, onFailure }));
  }
  const published = createMessageRate(clock);

  function admit({ visitor, isExempt }: Pick<PublishRequest, 'isExempt' | 'visitor'>): void {
    if (!isExempt) visitors.message(visitor);
  }

  async function keepFile(request: PublishRequest, id: string): Promise<TopicAttachment> {
    const { params, body, visitor } = request;
    const baseUrl = baseUrlNow();
    if (attachments === undefined || baseUrl === undefined)
      throw ntfyError('attachmentsDisallowed');
    const nowMs = clock.now();
    const deliverMs = params.deliverAt === undefined ? nowMs : params.deliverAt * 1_000;
    const messageEndMs = params.isCached ? deliverMs + limits.messageExpiryMs : Infinity;
    const expiresAtMs = Math.min(nowMs + limits.attachmentExpiryMs, messageEndMs);
    if (deliverMs > expiresAtMs) throw ntfyError('attachmentExpiresEarly');
    const { owned, total } = await attachments.usage(visitor);
    const bytesMax = Math.min(
      limits.attachmentBytesMax,
      limits.attachmentBytesPerVisitor - owned,
      limits.attachmentBytesTotal - total,
    );
    if ((body.contentLength ?? 0) > bytesMax) throw ntfyError('attachmentTooLarge');
    const { type, extension } = detectContentType(body.head, params.filename);
    const name = params.filename === '' ? `attachment${extension}` : attachedName(params);
    const facts = { name, type, owner: visitor, expiresAtMs, subject: subjectOf(request) };
    const size = await attachments.write(id, counted(body.all(), visitor), { facts, bytesMax });
    if (size === undefined) throw ntfyError('attachmentTooLarge');
    const url = `${baseUrl}/file/${id}${extension}`;
    const expires = Math.floor(expiresAtMs / 1_000);
    return { name, type, ...(size === 0 ? {} : { size }), expires, url };
  }

  /** The person to whom a file and its message belong. */
  function subjectOf({ user }: PublishRequest): string | undefined {
    return user === undefined || attachments?.isPersonal !== true
      ? undefined
      : `notify:user:${user}`;
  }

  async function* counted(
    content: AsyncIterable<Uint8Array>,
    visitor: string,
  ): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      if (!visitors.bytes(visitor, chunk.length)) throw ntfyError('attachmentTooLarge');
      yield chunk;
    }
  }

  function factsOf(topic: string): MessageFacts {
    const nowMs = clock.now();
    return { id: newMessageId(nowMs), topic, nowMs, expiryMs: limits.messageExpiryMs };
  }

  async function messageOf(request: PublishRequest): Promise<TopicMessage> {
    const { topic, params, body } = request;
    const facts = factsOf(topic);
    const use = useOfBody(params, body);
    if (use === 'discard') return pollRequest(params, facts);
    if (use !== 'attachment') return buildMessage(params, await textFrom(use, request), facts);
    const attachment = await keepFile(request, facts.id);
    const { title, priority } = params;
    const message = params.message || `You received a file: ${attachment.name}`;
    return buildMessage(params, { title, priority, message }, { ...facts, attachment });
  }

  async function textFrom(
    use: 'template' | 'text' | 'unified-push',
    { params, body }: PublishRequest,
  ): Promise<MessageText> {
    if (use === 'unified-push') return unifiedPushText(params, body);
    if (use === 'text') return textOfBody(params, body);
    const { messageBytesMax } = limits;
    // Few processes use templates: load their functions with the first one.
    const { templatedText, templateLimits } = await import('./templates/templated-text.ts');
    const json = await wholeBody(body, Math.max(messageBytesMax, templateLimits.bodyBytesMax));
    const { templates } = options;
    return templatedText(params, json.toString('utf8').trim(), { templates, messageBytesMax });
  }

  async function cancelScheduled(topic: string, sequenceId: string): Promise<void> {
    const cancelled = await scheduled.cancel(topic, sequenceId);
    await attachments?.remove(cancelled.map(({ id }) => id));
  }

  return {
    limits,
    visitors,
    reserved,
    attachments,
    get baseUrl() {
      return baseUrlNow();
    },
    rules: {
      delayMsMin: limits.delayMsMin,
      delayMsMax: limits.delayMsMax,
      hasEmail: options.sendEmail !== undefined,
    },
    touch: (topic, visitor) => known.touch(topic, visitor),
    async publish(request) {
      const { topic, params, visitor } = request;
      admit(request);
      if (params.email !== '') visitors.email(visitor);
      const message = await messageOf(request);
      // A file elsewhere does not expire.
      const hasFile = message.attachment?.expires !== undefined;
      const subject = hasFile ? subjectOf(request) : undefined;
      if (params.deliverAt !== undefined) {
        const replaced = await scheduled.schedule(message, subject);
        await attachments?.remove(replaced.map(({ id }) => id));
      } else {
        await log.append(message, subject);
        const { sequenceId } = params;
        if (params.isCached && sequenceId !== undefined) await cancelScheduled(topic, sequenceId);
        if (!params.isUnifiedPush) options.forward?.(message);
        if (params.email !== '') {
          await options.sendEmail?.({ to: params.email, message, sender: visitor });
        }
      }
      published.count();
      observer.count?.('notify_published_total', {});
      return message;
    },
    async change(event, { topic, sequenceId, visitor, isExempt }) {
      admit({ visitor, isExempt });
      const message = changeMessage(event, sequenceId, factsOf(topic));
      await log.append(message);
      if (event === 'message_delete') await cancelScheduled(topic, sequenceId);
      published.count();
      return message;
    },
    async read(request) {
      return (await readKept(request)).messages.map(({ message }) => message);
    },
    async follow(reader, request, ready) {
      const subscription = hub.join(reader);
      try {
        await subscription.ready;
        ready();
        const { messages, after } = await readKept(request);
        const last = new Map<string, string>();
        if (after !== undefined) for (const topic of reader.topics) last.set(topic, after);
        for (const { message, position } of messages)
          if (position !== '') last.set(message.topic, position);
        const wanted = messages.filter(({ message }) => reader.filter?.(message) ?? true);
        if (wanted.length > 0) reader.deliver(batchOf(wanted));
        subscription.live(last);
        // The permission may have been revoked before the reader joined the hub.
        if (reader.mayRead?.() === false) reader.cut();
      } catch (error) {
        subscription.leave();
        throw error;
      }
      return { [Symbol.dispose]: () => subscription.leave() };
    },
    cut: () => hub.cut(),
    cutThose: (matches) => hub.cut(matches),
    get published() {
      return published.total;
    },
    get publishedPerSecond() {
      return published.perSecond();
    },
    get readers() {
      return hub.readers;
    },
    async [Symbol.asyncDispose]() {
      await all.disposeAsync();
    },
  };

  async function readKept({ topics, since, withScheduled }: ReadRequest): Promise<KeptMessages> {
    const stored = await log.read(topics, since);
    if (!withScheduled || since.kind === 'none' || since.kind === 'latest') return stored;
    const lists = await Promise.all([...new Set(topics)].map((topic) => scheduled.list(topic)));
    const delivered = new Set(stored.messages.map(({ message }) => message.id));
    const pending = lists
      .flat()
      .filter(({ id }) => !delivered.has(id))
      .map((message) => ({ message, position: '' }));
    const byTime = pending.toSorted((a, b) => a.message.time - b.message.time);
    return { ...stored, messages: [...stored.messages, ...byTime] };
  }
}

/** Reads the whole body; rejects it if it reaches `bytesMax`. */
async function wholeBody(body: TopicBody, bytesMax: number): Promise<Buffer> {
  if (!body.isCut) return body.head;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body.all()) {
    size += chunk.length;
    if (size >= bytesMax) throw ntfyError('jsonTooLarge');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
