// Parameters of a request, which ntfy accepts as headers and in the query, under several names each.

import { parseJson } from '../foundation/parse-json.ts';
import { ntfyError } from './ntfy-problems.ts';

/** Names in lower case. Of a header that was sent several times, the first value is used. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface RequestParams {
  /** The first value that is not empty, headers before the query; '' if there is none. */
  readonly text: (names: readonly string[]) => string;
  /** `1`, `yes` and `true` are true, every other value is false. */
  flag(names: readonly string[], otherwise: boolean): boolean;
  /** Drops empty items, but keeps items of white space, as ntfy does. */
  list(names: readonly string[]): readonly string[];
}

export function requestParams(
  headers: RequestHeaders,
  query: URLSearchParams | undefined,
): RequestParams {
  const text = (names: readonly string[]): string => {
    for (const name of names) {
      const value = headers[name];
      if (value === undefined) continue;
      const read = headerText(name, typeof value === 'string' ? value : (value[0] ?? ''));
      if (read !== '') return read;
    }
    if (query === undefined) return '';
    for (const name of names) {
      const value = query.get(name);
      if (value !== null && value !== '') return value.trim();
    }
    return '';
  };
  return {
    text,
    flag(names, otherwise) {
      const value = text(names).toLowerCase();
      return value === '' ? otherwise : isTrue(value);
    },
    list: (names) => splitList(text(names)).map((each) => each.trim()),
  };
}

export function splitList(text: string): readonly string[] {
  return text.split(',').filter((each) => each !== '');
}

export function isTrue(value: string): boolean {
  return value === '1' || value === 'yes' || value === 'true';
}

export function isBoolean(value: string): boolean {
  return isTrue(value) || value === '0' || value === 'no' || value === 'false';
}

function headerText(name: string, value: string): string {
  const text = decodeMimeWords(utf8Header(value)).trim();
  // Proxies add the header `Priority` of RFC 9218 (`u=3, i`), which has another meaning.
  return name === 'priority' && /^u=\d(?:,\s*(?:i|\d))?$/.test(text) ? '' : text;
}

/** A JSON object of a request. As in Go, `null` is an object without fields. */
export function readJsonObject(body: Buffer): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = parseJson(body.toString('utf8'));
  } catch {
    throw ntfyError('jsonInvalid');
  }
  if (typeof parsed !== 'object' || Array.isArray(parsed)) throw ntfyError('jsonInvalid');
  return (parsed ?? {}) as Readonly<Record<string, unknown>>;
}

/** A text of a JSON object; '' if it is absent or null. */
export function textField(given: Readonly<Record<string, unknown>>, name: string): string {
  const value = given[name] ?? '';
  if (typeof value !== 'string') throw ntfyError('jsonInvalid');
  return value;
}

const priorities: Readonly<Record<string, number>> = {
  '1': 1,
  min: 1,
  '2': 2,
  low: 2,
  '3': 3,
  default: 3,
  '4': 4,
  high: 4,
  '5': 5,
  max: 5,
  urgent: 5,
};

/** By number or name; undefined if the text is empty. */
export function parsePriority(text: string): number | undefined {
  const name = text.trim().toLowerCase();
  if (name === '') return undefined;
  const number = Object.hasOwn(priorities, name) ? priorities[name] : undefined;
  if (number === undefined) throw ntfyError('priorityInvalid');
  return number;
}

/** An encoded word of RFC 2047. */
const encodedWord = /=\?([^?\s]+)\?([bBqQ])\?([^?\s]*)\?=/g;

/** Node decodes headers as latin1, but browsers and curl send UTF-8. */
function utf8Header(value: string): string {
  for (let at = 0; at < value.length; at += 1) {
    if (value.charCodeAt(at) > 0x7f) return Buffer.from(value, 'latin1').toString('utf8');
  }
  return value;
}

/** Decodes the encoded words of RFC 2047. A value that cannot be decoded is returned unchanged. */
export function decodeMimeWords(value: string): string {
  if (!value.includes('=?')) return value;
  let text = '';
  let at = 0;
  let afterWord = false;
  for (const match of value.matchAll(encodedWord)) {
    const [whole, charset = '', encoding = '', content = ''] = match;
    const decoded = decodeWord(charset, encoding.toLowerCase(), content);
    if (decoded === undefined) return value;
    const between = value.slice(at, match.index);
    // White space between two encoded words is not part of the text.
    if (!(afterWord && /^\s*$/.test(between))) text += between;
    text += decoded;
    at = match.index + whole.length;
    afterWord = true;
  }
  return text + value.slice(at);
}

function decodeWord(charset: string, encoding: string, content: string): string | undefined {
  const bytes = encoding === 'b' ? fromBase64(content) : fromQuoted(content);
  if (bytes === undefined) return undefined;
  const name = charset.toLowerCase();
  if (name === 'utf-8') return bytes.toString('utf8');
  if (name === 'iso-8859-1') return bytes.toString('latin1');
  return name === 'us-ascii'
    ? bytes.toString('latin1').replace(/[\x80-\xff]/g, '\ufffd')
    : undefined;
}

function fromBase64(content: string): Buffer | undefined {
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(content) && content.length % 4 === 0;
  return isBase64 ? Buffer.from(content, 'base64') : undefined;
}

function fromQuoted(content: string): Buffer | undefined {
  if (/=(?![0-9A-Fa-f]{2})/.test(content)) return undefined;
  const bytes = content
    .replaceAll('_', ' ')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
