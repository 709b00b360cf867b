// Publishing by one JSON document: its fields become what headers would have said.

import { actionDrafts } from './parse-actions.ts';
import { refused } from './ntfy-problems.ts';
import type { RequestHeaders } from './request-params.ts';
import { isTopicName } from './topic-name.ts';

export interface JsonPublish {
  readonly topic: string;
  readonly body: Buffer;
  /** The request's own, and over them what the document says. */
  readonly headers: RequestHeaders;
}

const texts = {
  title: 'x-title',
  attach: 'x-attach',
  filename: 'x-filename',
  click: 'x-click',
  icon: 'x-icon',
  email: 'x-email',
  delay: 'x-delay',
  call: 'x-call',
  cache: 'x-cache',
  firebase: 'x-firebase',
  sequence_id: 'x-sequence-id',
} as const;

export function readJsonPublish(body: Buffer, headers: RequestHeaders): JsonPublish {
  const given = objectOf(body);
  const topic = textOf(given, 'topic');
  const message = textOf(given, 'message');
  const said: Record<string, string> = {};
  for (const [name, header] of Object.entries(texts)) {
    const value = textOf(given, name);
    if (value !== '') said[header] = value;
  }
  const priority = given['priority'] ?? 0;
  if (typeof priority !== 'number' || !Number.isInteger(priority)) throw refused('jsonInvalid');
  if (priority !== 0) said['x-priority'] = String(priority);
  const markdown = given['markdown'] ?? false;
  if (typeof markdown !== 'boolean') throw refused('jsonInvalid');
  if (markdown) said['x-markdown'] = 'yes';
  const tags = given['tags'] ?? [];
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === 'string' || tag === null)) {
    throw refused('jsonInvalid');
  }
  if (tags.length > 0) said['x-tags'] = tags.map((tag) => tag ?? '').join(',');
  const actions = given['actions'] ?? [];
  if (!isActions(actions)) throw refused('jsonInvalid');
  if (actions.length > 0) said['x-actions'] = JSON.stringify(actions);
  if (!isTopicName(topic)) throw refused('topicInvalid');
  return {
    topic,
    body: Buffer.from(message === '' ? 'triggered' : message),
    headers: { ...headers, ...latin(said) },
  };
}

/** Headers are read as the bytes that they travelled as. */
function latin(said: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(said).map(([name, value]) => [
      name,
      Buffer.from(value, 'utf8').toString('latin1'),
    ]),
  );
}

function objectOf(body: Buffer): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    throw refused('jsonInvalid');
  }
  if (parsed === null) return {};
  if (typeof parsed !== 'object' || Array.isArray(parsed)) throw refused('jsonInvalid');
  return parsed as Readonly<Record<string, unknown>>;
}

function textOf(given: Readonly<Record<string, unknown>>, name: string): string {
  const value = given[name] ?? '';
  if (typeof value !== 'string') throw refused('jsonInvalid');
  return value;
}

/** Their types here, their rules later: ntfy tells the one as bad JSON and the other as bad actions. */
function isActions(value: unknown): value is readonly object[] {
  if (!Array.isArray(value)) return false;
  if (value.length === 0) return true;
  try {
    actionDrafts(value);
    return true;
  } catch {
    return false;
  }
}
