// Functions of templates over texts, encodings and paths.

import { createHash } from 'node:crypto';
import {
  bounded,
  failed,
  functionLimits as limits,
  int,
  prefixed,
  shown,
  text,
  texts,
  type TemplateFunctions,
} from './arguments.ts';
import type { TemplateValue } from './values.ts';

const digest = (kind: string, value: TemplateValue): string =>
  createHash(kind).update(text(value)).digest('hex');

const pathFunctions: TemplateFunctions = {
  base: (value) => baseOf(text(value)),
  dir: (value) => cleaned(text(value).slice(0, text(value).lastIndexOf('/') + 1)),
  clean: (value) => cleaned(text(value)),
  ext: (value) => /\.[^./]*$/.exec(text(value))?.[0] ?? '',
  isAbs: (value) => text(value).startsWith('/'),
};

export const textFunctions: TemplateFunctions = {
  upper: (value) => text(value).toUpperCase(),
  lower: (value) => text(value).toLowerCase(),
  title: (value) => titled(text(value)),
  trim: (value) => text(value).trim(),
  trimAll: (cut, value) => trimmed(text(value), text(cut)),
  trimPrefix: (cut, value) =>
    text(value).startsWith(text(cut)) ? text(value).slice(text(cut).length) : text(value),
  trimSuffix: (cut, value) =>
    text(cut) !== '' && text(value).endsWith(text(cut))
      ? text(value).slice(0, -text(cut).length)
      : text(value),
  trunc: (count, value) => truncated(int(count), text(value)),
  substr: (from, to, value) => cutOut(int(from), int(to), text(value)),
  repeat: (count, value) => repeated(int(count), text(value)),
  replace: (from, to, value) => bounded(text(value).replaceAll(text(from), () => text(to))),
  contains: (part, value) => text(value).includes(text(part)),
  hasPrefix: (part, value) => text(value).startsWith(text(part)),
  hasSuffix: (part, value) => text(value).endsWith(text(part)),
  indent: (count, value) => bounded(indented(int(count), text(value))),
  nindent: (count, value) => bounded(`\n${indented(int(count), text(value))}`),
  plural: (one, many, count) => (int(count) === 1 ? text(one) : text(many)),
  join: (by, values) => bounded(texts(values).join(text(by))),
  sortAlpha: (values) => sortedByBytes(texts(values)),
  split: (by, value) => numbered(text(value).split(text(by))),
  splitList: (by, value) => text(value).split(text(by)),
  splitn: (by, count, value) => numbered(parts(text(by), int(count), text(value))),
  regexQuoteMeta: (value) => text(value).replaceAll(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`),
  toString: (value: TemplateValue) => shown(value),
  toStrings: (values) => texts(values),

  sha1sum: (value) => digest('sha1', value),
  sha256sum: (value) => digest('sha256', value),
  sha512sum: (value) => digest('sha512', value),
  adler32sum: (value) => String(adler32(Buffer.from(text(value)))),
  b64enc: (value) => Buffer.from(text(value)).toString('base64'),
  b64dec: (value) => base64Decoded(text(value)),
  b32enc: (value) => base32Encoded(Buffer.from(text(value))),
  b32dec: (value) => base32Decoded(text(value)),

  ...pathFunctions,
  // Paths of the operating system have slashes where ntfy runs.
  ...prefixed('os', pathFunctions),
};

/** Functions that take any number of arguments. */
export const textsOfMany: TemplateFunctions = {
  quote: (...values) =>
    texts(values)
      .map((value) => JSON.stringify(value))
      .join(' '),
  squote: (...values) =>
    texts(values)
      .map((value) => `'${value}'`)
      .join(' '),
  cat: (...values) => texts(values).join(' '),
};

/** The first letter of each word in upper case, the others in lower case. */
function titled(value: string): string {
  return value.replace(
    /\p{L}[\p{L}\p{M}\p{N}_]*(?:['’.:]\p{L}[\p{L}\p{M}\p{N}_]*)*/gu,
    (word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase(),
  );
}

function trimmed(value: string, cut: string): string {
  const [letters, cuts] = [Array.from(value), new Set(cut)];
  let [from, to] = [0, letters.length];
  while (from < to && cuts.has(letters[from] ?? '')) from += 1;
  while (to > from && cuts.has(letters[to - 1] ?? '')) to -= 1;
  return letters.slice(from, to).join('');
}

function sortedByBytes(values: readonly string[]): string[] {
  const pairs = values.map((value) => ({ value, bytes: Buffer.from(value) }));
  return pairs.toSorted((a, b) => a.bytes.compare(b.bytes)).map(({ value }) => value);
}

/** Go counts bytes. */
function truncated(count: number, value: string): string {
  const bytes = Buffer.from(value);
  if (count < 0 && bytes.length + count > 0) return bytes.subarray(count).toString();
  return count >= 0 && bytes.length > count ? bytes.subarray(0, count).toString() : value;
}

function cutOut(from: number, to: number, value: string): string {
  const bytes = Buffer.from(value);
  const start = from < 0 ? 0 : from;
  const end = from >= 0 && (to < 0 || to > bytes.length) ? bytes.length : to;
  if (end < start || end > bytes.length) return failed('slice bounds out of range');
  return bytes.subarray(start, end).toString();
}

function repeated(count: number, value: string): string {
  const { loopsMax, textCharsMax } = limits;
  if (count > loopsMax) return failed(`repeat count ${count} exceeds limit of ${loopsMax}`);
  if (count < 0) return failed('negative Repeat count');
  if (count * Buffer.byteLength(value) >= textCharsMax) {
    return failed(`repeat count ${count} exceeds limit of ${textCharsMax}`);
  }
  return value.repeat(count);
}

function indented(count: number, value: string): string {
  if (count > limits.indentMax)
    return failed(`indent ${count} exceeds limit of ${limits.indentMax}`);
  if (count < 0) return failed('negative Repeat count');
  const pad = ' '.repeat(count);
  return pad + value.replaceAll('\n', `\n${pad}`);
}

function parts(by: string, count: number, value: string): readonly string[] {
  if (count === 0) return [];
  const all = value.split(by);
  if (count < 0 || all.length <= count) return all;
  return [...all.slice(0, count - 1), all.slice(count - 1).join(by)];
}

function numbered(all: readonly string[]): TemplateValue {
  return Object.fromEntries(all.map((part, at) => [`_${at}`, part]));
}

function adler32(bytes: Buffer): number {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return b * 65_536 + a;
}

/** Returns an error text for invalid base64, as sprig does. */
function base64Decoded(value: string): string {
  const plain = value.replaceAll(/[\r\n]/g, '');
  const isWhole = plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain);
  if (isWhole) return Buffer.from(plain, 'base64').toString('utf8');
  const bad = plain.search(/[^A-Za-z0-9+/]/);
  return `illegal base64 data at input byte ${bad === -1 ? plain.length - (plain.length % 4) : bad}`;
}

const base32Letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function base32Encoded(bytes: Buffer): string {
  let bits = '';
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0');
  let result = '';
  for (let at = 0; at < bits.length; at += 5) {
    result += base32Letters[parseInt(bits.slice(at, at + 5).padEnd(5, '0'), 2)] ?? '';
  }
  return result.padEnd(Math.ceil(result.length / 8) * 8, '=');
}

function base32Decoded(value: string): string {
  const plain = value.replaceAll(/[\r\n]/g, '');
  const letters = trimmedEnd(plain, '=');
  const bad = letters.search(/[^A-Z2-7]/);
  const isWhole = plain.length % 8 === 0 && ![1, 3, 6].includes(letters.length % 8);
  if (bad !== -1 || !isWhole) {
    return `illegal base32 data at input byte ${bad === -1 ? letters.length : bad}`;
  }
  let bits = '';
  for (const letter of letters) {
    bits += base32Letters.indexOf(letter).toString(2).padStart(5, '0');
  }
  const bytes = bits.match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => parseInt(byte, 2))).toString('utf8');
}

/** Not `posix.normalize`, which takes quadratic time for many `..`. */
function cleaned(path: string): string {
  const root = path.startsWith('/') ? '/' : '';
  const kept: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (root === '') kept.push(part);
  }
  return `${root}${kept.join('/')}` || '.';
}

/** Not a regular expression, which would start again at each letter. */
function trimmedEnd(value: string, letter: string): string {
  let end = value.length;
  while (value[end - 1] === letter) end -= 1;
  return value.slice(0, end);
}

function baseOf(path: string): string {
  if (path === '') return '.';
  const bare = trimmedEnd(path, '/');
  return bare === '' ? '/' : bare.slice(bare.lastIndexOf('/') + 1);
}
