// The buttons of a notification, in JSON or in ntfy's short form.

import {
  invalid,
  kindsWithUrl,
  kindsWithValue,
  parseShortActions,
  type ActionDraft,
} from './short-actions.ts';
import { randomLetters, type TopicAction } from './topic-message.ts';

const actionsMax = 3;
const kinds = new Set(['view', 'broadcast', 'http', 'copy']);

export function parseActions(text: string): readonly TopicAction[] {
  const trimmed = text.trim();
  const drafts = trimmed.startsWith('[') ? fromJson(trimmed) : parseShortActions(trimmed);
  return checkActions(drafts);
}

function checkActions(drafts: readonly ActionDraft[]): readonly TopicAction[] {
  if (drafts.length > actionsMax) throw invalid(`only ${actionsMax} actions allowed`);
  return drafts.map(finished);
}

function finished(draft: ActionDraft): TopicAction {
  const kind = draft.action.toLowerCase();
  const method = draft.method.toUpperCase();
  if (!kinds.has(kind)) {
    throw invalid(
      `parameter 'action' cannot be '${kind}', valid values are 'view', 'broadcast', 'http' and 'copy'`,
    );
  }
  if (draft.label === '') throw invalid("parameter 'label' is required");
  if (kindsWithUrl.includes(kind) && draft.url === '') {
    throw invalid(`parameter 'url' is required for action '${kind}'`);
  }
  if (kindsWithValue.includes(kind) && draft.value === '') {
    throw invalid(`parameter 'value' is required for action '${kind}'`);
  }
  if (kind === 'http' && ['GET', 'HEAD'].includes(method) && draft.body !== '') {
    throw invalid(`parameter 'body' cannot be set if method is ${method}`);
  }
  return {
    id: randomLetters(10),
    action: kind,
    label: draft.label,
    clear: draft.clear,
    ...(draft.url === '' ? {} : { url: draft.url }),
    ...(method === '' ? {} : { method }),
    ...(Object.keys(draft.headers).length === 0 ? {} : { headers: draft.headers }),
    ...(draft.body === '' ? {} : { body: draft.body }),
    ...(draft.intent === '' ? {} : { intent: draft.intent }),
    ...(Object.keys(draft.extras).length === 0 ? {} : { extras: draft.extras }),
    ...(draft.value === '' ? {} : { value: draft.value }),
  };
}

function fromJson(text: string): readonly ActionDraft[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw invalid(`JSON error: ${error instanceof Error ? error.message : String(error)}`);
  }
  return actionDrafts(parsed);
}

/** What a JSON document says of actions, its types checked. */
export function actionDrafts(parsed: unknown): readonly ActionDraft[] {
  if (!Array.isArray(parsed)) throw invalid('JSON error: an array is needed');
  return parsed.map((each: unknown) => {
    if (typeof each !== 'object' || each === null) throw invalid('JSON error: an object is needed');
    const given = each as Readonly<Record<string, unknown>>;
    const { clear = false } = given;
    if (clear !== null && typeof clear !== 'boolean') {
      throw invalid("JSON error: 'clear' must be a boolean");
    }
    return {
      action: textOf(given, 'action'),
      label: textOf(given, 'label'),
      clear: clear === true,
      url: textOf(given, 'url'),
      method: textOf(given, 'method'),
      headers: textsOf(given, 'headers'),
      body: textOf(given, 'body'),
      intent: textOf(given, 'intent'),
      extras: textsOf(given, 'extras'),
      value: textOf(given, 'value'),
    };
  });
}

function textOf(given: Readonly<Record<string, unknown>>, name: string): string {
  const value = given[name] ?? '';
  if (typeof value === 'string') return value;
  throw invalid(`JSON error: '${name}' must be a string`);
}

function textsOf(
  given: Readonly<Record<string, unknown>>,
  name: string,
): Readonly<Record<string, string>> {
  const value = given[name] ?? {};
  const isGood =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === 'string');
  if (isGood) return value as Readonly<Record<string, string>>;
  throw invalid(`JSON error: '${name}' must be an object of strings`);
}
