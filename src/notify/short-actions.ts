// ntfy's short form of actions: `view, Open, https://…, clear=true; http, Stop, https://…, body='{}'`.

import { refused } from './ntfy-problems.ts';

export interface ActionDraft {
  action: string;
  label: string;
  clear: boolean;
  url: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  intent: string;
  extras: Record<string, string>;
  value: string;
}

interface Section {
  readonly key: string;
  readonly value: string;
  /** An action ends here. */
  readonly isLast: boolean;
  readonly next: number;
}

export const kindsWithUrl: readonly string[] = ['view', 'http'];
export const kindsWithValue: readonly string[] = ['copy'];

export function invalid(reason: string): Error {
  return refused('actionsInvalid', reason);
}

const spaces = /[ \t\r\n]*/y;
const keyBefore = /([-.\w]+)\s*=\s*/y;

export function parseShortActions(text: string): readonly ActionDraft[] {
  const drafts: ActionDraft[] = [];
  for (let at = 0; at < text.length;) {
    const draft: ActionDraft = {
      action: '',
      label: '',
      clear: false,
      url: '',
      method: '',
      headers: {},
      body: '',
      intent: '',
      extras: {},
      value: '',
    };
    for (let place = 0; ; place += 1) {
      const { key, value, isLast, next } = readSection(text, at);
      fill(draft, place, key, value);
      at = skipSpaces(text, next);
      if (isLast) break;
    }
    drafts.push(draft);
  }
  return drafts;
}

function fill(draft: ActionDraft, place: number, given: string, value: string): void {
  const key = given === '' ? keyOfPlace(draft, place) : given;
  if (key === undefined) throw invalid(`term '${value}' unknown`);
  if (key.startsWith('headers.')) {
    draft.headers[key.slice('headers.'.length)] = value;
    return;
  }
  if (key.startsWith('extras.')) {
    draft.extras[key.slice('extras.'.length)] = value;
    return;
  }
  const name = key.toLowerCase();
  switch (name) {
    case 'clear':
      if (!['true', 'yes', '1', 'false', 'no', '0'].includes(value.toLowerCase())) {
        throw invalid(
          `parameter 'clear' cannot be '${value}', only boolean values are allowed (true/yes/1/false/no/0)`,
        );
      }
      draft.clear = ['true', 'yes', '1'].includes(value.toLowerCase());
      return;
    case 'action':
    case 'label':
    case 'url':
    case 'method':
    case 'body':
    case 'value':
    case 'intent':
      draft[name] = value;
      return;
    default:
      throw invalid(`key '${key}' unknown`);
  }
}

/** What stands without a key is known by its place. */
function keyOfPlace({ action }: ActionDraft, place: number): string | undefined {
  if (place === 0) return 'action';
  if (place === 1) return 'label';
  if (place !== 2) return undefined;
  if (kindsWithUrl.includes(action)) return 'url';
  return kindsWithValue.includes(action) ? 'value' : undefined;
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
  // Positions are told in bytes, as ntfy counts.
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
