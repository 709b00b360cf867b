// A message of a topic, as the bus stores it and as clients of ntfy see it.

import { randomFillSync } from 'node:crypto';

export type TopicEvent =
  | 'open'
  | 'keepalive'
  | 'message'
  | 'message_delete'
  | 'message_clear'
  | 'poll_request';

export interface TopicAttachment {
  readonly name: string;
  readonly type?: string;
  readonly size?: number;
  /** Unix seconds. */
  readonly expires?: number;
  readonly url: string;
}

export interface TopicAction {
  readonly id: string;
  readonly action: string;
  readonly label: string;
  readonly clear: boolean;
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly intent?: string;
  readonly extras?: Readonly<Record<string, string>>;
  readonly value?: string;
}

/** ntfy's fields in ntfy's order, for clients that compare texts. */
export interface TopicMessage {
  readonly id: string;
  /** Absent: the id. */
  readonly sequence_id?: string;
  /** Unix seconds; of a scheduled message, its delivery time. */
  readonly time: number;
  /** Unix seconds. Absent: only connected readers get the message. */
  readonly expires?: number;
  readonly event: TopicEvent;
  readonly topic: string;
  readonly title?: string;
  readonly message?: string;
  readonly priority?: number;
  readonly tags?: readonly string[];
  readonly click?: string;
  readonly icon?: string;
  readonly actions?: readonly TopicAction[];
  readonly attachment?: TopicAttachment;
  readonly poll_id?: string;
  readonly content_type?: string;
  readonly encoding?: string;
}

type Filled<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

/** Omits what ntfy omits: undefined fields, empty texts, and lists and objects without entries. */
export function filled<Fields extends object>(fields: Fields): Filled<Fields> {
  const isEmpty = (value: unknown): boolean =>
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
  const entries = Object.entries(fields).filter(([, value]) => !isEmpty(value));
  return Object.fromEntries(entries) as Filled<Fields>;
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const messageIdChars = 12;
const timeChars = 5;
/** 2026-01-01; five letters count the seconds of 29 years. */
const epochSeconds = 1_767_225_600;
const secondsMax = letters.length ** timeChars;

const pool = new Uint8Array(4_096);
let poolAt = pool.length;

function randomByte(): number {
  if (poolAt === pool.length) {
    randomFillSync(pool);
    poolAt = 0;
  }
  const byte = pool[poolAt] ?? 0;
  poolAt += 1;
  return byte;
}

export function randomLetters(count: number): string {
  let text = '';
  while (text.length < count) {
    const byte = randomByte();
    // Values from 248 on would make some letters more likely than others.
    if (byte < 248) text += letters[byte % 62];
  }
  return text;
}

/**
 * Twelve letters and digits, as in ntfy. The first five encode the time, by which every process finds the message
 * in the bus; the other seven are random (41 bits), because links to attachments contain the id.
 */
export function newMessageId(nowMs: number): string {
  let seconds = Math.max(0, Math.floor(nowMs / 1_000) - epochSeconds) % secondsMax;
  let time = '';
  for (let at = 0; at < timeChars; at += 1) {
    time = (letters[seconds % 62] ?? '') + time;
    seconds = Math.floor(seconds / 62);
  }
  return time + randomLetters(messageIdChars - timeChars);
}

export function isMessageId(text: string): boolean {
  return /^[A-Za-z0-9]{12}$/.test(text);
}

/** The approximate time of a message id; arbitrary for an id that is not ours. */
export function timeOfMessageId(id: string): number {
  let seconds = 0;
  for (const letter of id.slice(0, timeChars)) seconds = seconds * 62 + letters.indexOf(letter);
  return (epochSeconds + seconds) * 1_000;
}

/** Opens a stream or keeps it alive: sent to one client, never stored. */
export function controlMessage(
  event: 'open' | 'keepalive',
  topics: string,
  nowMs: number,
): TopicMessage {
  return { id: newMessageId(nowMs), time: Math.floor(nowMs / 1_000), event, topic: topics };
}

const textFields = [
  'sequence_id',
  'title',
  'message',
  'click',
  'icon',
  'poll_id',
  'content_type',
  'encoding',
] as const;

/**
 * Converts a bus message. Messages that our servers published are returned unchanged; of other producers' messages,
 * the fields that ntfy can show are used.
 */
export function toTopicMessage(
  payload: unknown,
  {
    busId,
    topic,
    storedAtMs,
  }: { readonly busId: string; readonly topic: string; readonly storedAtMs: number },
): TopicMessage {
  const given = (typeof payload === 'object' && payload !== null ? payload : {}) as Record<
    string,
    unknown
  >;
  if (isTopicMessage(given) && given.topic === topic) return given;
  const texts: Record<string, string> = {};
  for (const field of textFields) {
    const value = given[field];
    if (typeof value === 'string' && value !== '') texts[field] = value;
  }
  const { priority, tags } = given;
  const time = Math.floor(storedAtMs / 1_000);
  return {
    id: isMessageId(busId) ? busId : lettersOf(busId),
    time,
    expires: time + 43_200,
    event: 'message',
    topic,
    ...texts,
    message: texts['message'] ?? (payload === null ? 'triggered' : textOf(payload)),
    ...(typeof priority === 'number' && [1, 2, 3, 4, 5].includes(priority) ? { priority } : {}),
    ...(Array.isArray(tags) ? { tags: tags.filter((tag) => typeof tag === 'string') } : {}),
  };
}

function isTopicMessage(
  value: Readonly<Record<string, unknown>>,
): value is Record<string, unknown> & TopicMessage {
  return (
    typeof value['id'] === 'string' &&
    isMessageId(value['id']) &&
    typeof value['time'] === 'number' &&
    typeof value['topic'] === 'string' &&
    ['message', 'message_delete', 'message_clear', 'poll_request'].includes(String(value['event']))
  );
}

function textOf(payload: unknown): string {
  if (payload instanceof Uint8Array) return Buffer.from(payload).toString('utf8').slice(0, 4_096);
  return (typeof payload === 'string' ? payload : JSON.stringify(payload)).slice(0, 4_096);
}

/** Hashes a text to 12 letters. */
function lettersOf(text: string): string {
  let first = 0x811c9dc5;
  let second = 0x01000193;
  for (let at = 0; at < text.length; at += 1) {
    first = Math.imul(first ^ text.charCodeAt(at), 0x01000193) >>> 0;
    second = Math.imul(second ^ text.charCodeAt(at), 0x85ebca6b) >>> 0;
  }
  let number = (BigInt(first) << 32n) | BigInt(second);
  let id = '';
  for (let at = 0; at < messageIdChars; at += 1) {
    id += letters[Number(number % 62n)];
    number = number / 62n + (at === 9 ? BigInt(first) : 0n);
  }
  return id;
}

/** For `/json` and the response to a publish: without a sequence id that equals the id. */
export function messageJson(message: TopicMessage): string {
  if (message.sequence_id !== message.id) return JSON.stringify(message);
  return JSON.stringify({ ...message, sequence_id: undefined });
}

/** For `/ws`, where ntfy always sends the sequence id. */
export function messageFrameJson(message: TopicMessage): string {
  if (message.sequence_id !== undefined || message.event === 'open') return JSON.stringify(message);
  const { id, ...rest } = message;
  return JSON.stringify({ id, sequence_id: id, ...rest });
}
