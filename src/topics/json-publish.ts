// Publishing with one JSON document: its fields are translated to the headers of an ordinary publish.

import { actionDrafts } from './parse-actions.ts';
import { ntfyError } from './ntfy-problems.ts';
import { readJsonObject, textField, type RequestHeaders } from './request-params.ts';
import { isTopicName } from './topic-name.ts';

export interface JsonPublish {
  readonly topic: string;
  readonly body: Buffer;
  /** Headers of the request, overridden by fields of the document. */
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
  const given = readJsonObject(body);
  const topic = textField(given, 'topic');
  const message = textField(given, 'message');
  const fields: Record<string, string> = {};
  for (const [name, header] of Object.entries(texts)) {
    const value = textField(given, name);
    if (value !== '') fields[header] = value;
  }
  const priority = given['priority'] ?? 0;
  if (typeof priority !== 'number' || !Number.isInteger(priority)) throw ntfyError('jsonInvalid');
  if (priority !== 0) fields['x-priority'] = String(priority);
  const markdown = given['markdown'] ?? false;
  if (typeof markdown !== 'boolean') throw ntfyError('jsonInvalid');
  if (markdown) fields['x-markdown'] = 'yes';
  const tags = given['tags'] ?? [];
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === 'string' || tag === null)) {
    throw ntfyError('jsonInvalid');
  }
  if (tags.length > 0) fields['x-tags'] = tags.map((tag) => tag ?? '').join(',');
  const actions = given['actions'] ?? [];
  if (!isActions(actions)) throw ntfyError('jsonInvalid');
  if (actions.length > 0) fields['x-actions'] = JSON.stringify(actions);
  if (!isTopicName(topic)) throw ntfyError('topicInvalid');
  return {
    topic,
    body: Buffer.from(message === '' ? 'triggered' : message),
    headers: { ...headers, ...asLatin1(fields) },
  };
}

/** Header values are decoded from latin1 later. */
function asLatin1(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      Buffer.from(value, 'utf8').toString('latin1'),
    ]),
  );
}

/** Checks types only: ntfy reports wrong types as invalid JSON, and other mistakes later as invalid actions. */
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
