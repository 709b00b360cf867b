// Parameters of a request: a header of any of their names first, then the query.

import { decodeMimeWords, utf8Header } from './mime-words.ts';

/** Small letters; a value that was sent several times is the first one. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface RequestParams {
  /** The first of these names that is not empty; '' where none is. */
  readonly text: (names: readonly string[]) => string;
  /** 1, yes and true are true, everything else is false. */
  flag(names: readonly string[], otherwise: boolean): boolean;
  /** Empty ones are left out before white space is. */
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
  // RFC 9218 has a header of the same name, which proxies add: `u=3, i`.
  return name === 'priority' && /^u=\d(?:,\s*(?:i|\d))?$/.test(text) ? '' : text;
}
