// The action buttons of a notification, in JSON or in ntfy's short form:
// `view, Open, https://…, clear=true; http, Stop, https://…, body='{}'`.

import { parseJson } from '../foundation/parse-json.ts';
import { ntfyError } from './ntfy-problems.ts';
import { isBoolean, isTrue } from './request-params.ts';
import { filled, randomLetters, type TopicAction } from './topic-message.ts';

const actionsMax = 3;
const kinds = new Set(['view', 'broadcast', 'http', 'copy']);
const kindsWithUrl = new Set(['view', 'http']);
const kindsWithValue = new Set(['copy']);

const textNames = ['action', 'label', 'url', 'method', 'body', 'intent', 'value'] as const;

type ActionTexts = Record<(typeof textNames)[number], string>;

interface ActionDraft extends ActionTexts {
  clear: boolean;
  headers: Record<string, string>;
  extras: Record<string, string>;
}

function newDraft(valueOf: (name: string) => string): ActionDraft {
  const texts = Object.fromEntries(textNames.map((name) => [name, valueOf(name)])) as ActionTexts;
  return { ...texts, clear: false, headers: {}, extras: {} };
}

export function parseActions(text: string): readonly TopicAction[] {
  const trimmed = text.trim();
  const drafts = trimmed.startsWith('[') ? fromJson(trimmed) : parseShortActions(trimmed);
  if (drafts.length > actionsMax) throw invalid(`only ${actionsMax} actions allowed`);
  return drafts.map(checkedAction);
}

function checkedAction(draft: ActionDraft): TopicAction {
  const kind = draft.action.toLowerCase();
  const method = draft.method.toUpperCase();
  if (!kinds.has(kind)) {
    throw invalid(
      `parameter 'action' cannot be '${kind}', valid values are 'view', 'broadcast', 'http' and 'copy'`,
    );
  }
  if (draft.label === '') throw invalid("parameter 'label' is required");
  if (kindsWithUrl.has(kind) && draft.url === '') {
    throw invalid(`parameter 'url' is required for action '${kind}'`);
  }
  if (kindsWithValue.has(kind) && draft.value === '') {
    throw invalid(`parameter 'value' is required for action '${kind}'`);
  }
  if (kind === 'http' && ['GET', 'HEAD'].includes(method) && draft.body !== '') {
    throw invalid(`parameter 'body' cannot be set if method is ${method}`);
  }
  const { label, clear, url, headers, body, intent, extras, value } = draft;
  const more = filled({ url, method, headers, body, intent, extras, value });
  return { id: randomLetters(10), action: kind, label, clear, ...more };
}

function fromJson(text: string): readonly ActionDraft[] {
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (error) {
    throw invalid(`JSON error: ${error instanceof Error ? error.message : String(error)}`);
  }
  return actionDrafts(parsed);
}

/** Reads actions from parsed JSON and checks the types of their fields. */
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
      ...newDraft((name) => textOf(given, name)),
      clear: clear === true,
      headers: textsOf(given, 'headers'),
      extras: textsOf(given, 'extras'),
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
  const isRecord =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === 'string');
  if (isRecord) return value as Readonly<Record<string, string>>;
  throw invalid(`JSON error: '${name}' must be an object of strings`);
}

interface Section {
  readonly key: string;
  readonly value: string;
  /** The last section of an action. */
  readonly isLast: boolean;
  readonly next: number;
}

const spaces = /[ \t\r\n]*/y;
const keyBefore = /([-.\w]+)\s*=\s*/y;

function parseShortActions(text: string): readonly ActionDraft[] {
  const drafts: ActionDraft[] = [];
  for (let at = 0; at < text.length;) {
    const draft = newDraft(() => '');
    for (let index = 0; ; index += 1) {
      const { key, value, isLast, next } = readSection(text, at);
      fill(draft, index, key, value);
      at = skipSpaces(text, next);
      if (isLast) break;
    }
    drafts.push(draft);
  }
  return drafts;
}

function fill(draft: ActionDraft, index: number, given: string, value: string): void {
  const key = given === '' ? keyAt(draft, index) : given;
  if (key === undefined) throw invalid(`term '${value}' unknown`);
  const [, group, field = ''] = /^(headers|extras)\.(.*)$/.exec(key) ?? [];
  const name = key.toLowerCase();
  if (group !== undefined) draft[group as 'headers' | 'extras'][field] = value;
  else if (isTextName(name)) draft[name] = value;
  else if (name !== 'clear') throw invalid(`key '${key}' unknown`);
  else if (isBoolean(value.toLowerCase())) draft.clear = isTrue(value.toLowerCase());
  else {
    throw invalid(
      `parameter 'clear' cannot be '${value}', only boolean values are allowed (true/yes/1/false/no/0)`,
    );
  }
}

function isTextName(name: string): name is keyof ActionTexts {
  return (textNames as readonly string[]).includes(name);
}

/** The key of a value without one follows from its position. */
function keyAt({ action }: ActionDraft, index: number): string | undefined {
  if (index === 0) return 'action';
  if (index === 1) return 'label';
  if (index !== 2) return undefined;
  if (kindsWithUrl.has(action)) return 'url';
  return kindsWithValue.has(action) ? 'value' : undefined;
}

function readSection(text: string, from: number): Section {
  let at = skipSpaces(text, from);
  keyBefore.lastIndex = at;
  const key = keyBefore.exec(text)?.[1] ?? '';
  if (key !== '') at = keyBefore.lastIndex;
  const first = text[at];
  if (first === '"' || first === "'") return { key, ...readQuoted(text, at) };
  let end = at;
  while (!isSectionEnd(text[end])) end += 1;
  return { key, value: text.slice(at, end).trim(), ...ending(text, end) };
}

function readQuoted(text: string, from: number): Omit<Section, 'key'> {
  const quote = text[from] ?? '';
  let end = from + 1;
  while (end < text.length && (text[end] !== quote || text[end - 1] === '\\')) end += 1;
  // ntfy reports positions in bytes.
  if (end >= text.length) {
    throw invalid(
      `unexpected end of input, quote started at position ${bytesBefore(text, from + 1)}`,
    );
  }
  const value = text.slice(from + 1, end).replaceAll(`\\${quote}`, quote);
  const next = skipSpaces(text, end + 1);
  if (isSectionEnd(text[next])) return { value, ...ending(text, next) };
  const character = String.fromCodePoint(text.codePointAt(next) ?? 0);
  throw invalid(`unexpected character '${character}' at position ${bytesBefore(text, next)}`);
}

function ending(text: string, at: number): Pick<Section, 'isLast' | 'next'> {
  return { isLast: text[at] !== ',', next: Math.min(at + 1, text.length) };
}

function isSectionEnd(character: string | undefined): boolean {
  return character === undefined || character === ';' || character === ',';
}

function skipSpaces(text: string, from: number): number {
  spaces.lastIndex = from;
  spaces.exec(text);
  return spaces.lastIndex;
}

function bytesBefore(text: string, at: number): number {
  return Buffer.byteLength(text.slice(0, at));
}

function invalid(reason: string): Error {
  return ntfyError('actionsInvalid', reason);
}
