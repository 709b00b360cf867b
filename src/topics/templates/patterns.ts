// Functions of templates over regular expressions, which RE2 evaluates in linear time, and URLs.

import { RE2JS } from 're2js';
import { bounded, dict, failed, int, prefixed, text, type TemplateFunctions } from './arguments.ts';
import { typeOfValue, type TemplateDict, type TemplateValue } from './values.ts';

interface Match {
  readonly start: number;
  readonly end: number;
  readonly groups: readonly (string | null)[];
  readonly named: Readonly<Record<string, number>>;
}

const strict: TemplateFunctions = {
  regexMatch: (pattern, value) => matches(text(pattern), text(value), 1).length > 0,
  regexFind: (pattern, value) => matches(text(pattern), text(value), 1)[0]?.groups[0] ?? '',
  regexFindAll: (pattern, value, count) =>
    matches(text(pattern), text(value), int(count)).map(({ groups }) => groups[0] ?? ''),
  regexReplaceAll: (pattern, value, by) =>
    replaced(text(pattern), text(value), (match) => expanded(text(by), match)),
  regexReplaceAllLiteral: (pattern, value, by) =>
    replaced(text(pattern), text(value), () => text(by)),
  regexSplit: (pattern, value, count) => splitBy(text(pattern), text(value), int(count)),
};

export const patternFunctions: TemplateFunctions = {
  ...strict,
  ...prefixed('must', strict),
  // Returns false for an invalid pattern, unlike `mustRegexMatch`.
  regexMatch: (pattern, value) =>
    isPattern(text(pattern)) && matches(text(pattern), text(value), 1).length > 0,
  regexQuoteMeta: (value) => text(value).replaceAll(/[\\.+*?()|[\]{}^$]/g, String.raw`\$&`),
  urlParse: (value) => parsedUrl(text(value)),
  urlJoin: (value) => joinedUrl(dict(value)),
};

function isPattern(pattern: string): boolean {
  try {
    return RE2JS.compile(pattern) !== undefined;
  } catch {
    return false;
  }
}

/** At most `count` matches; all of them if it is negative. */
function matches(pattern: string, value: string, count: number): readonly Match[] {
  let compiled;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
  const matcher = compiled.matcher(value);
  const named = compiled.namedGroups();
  const found: Match[] = [];
  while ((count < 0 || found.length < count) && matcher.find()) {
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, at) => matcher.group(at));
    const [start, end] = [matcher.start(), matcher.end()];
    // Go skips an empty match right after another match.
    const before = found.at(-1);
    if (start === end && before !== undefined && before.end === start) continue;
    found.push({ start, end, groups, named });
  }
  return found;
}

function replaced(pattern: string, value: string, by: (match: Match) => string): string {
  let result = '';
  let last = 0;
  for (const match of matches(pattern, value, -1)) {
    result = bounded(result + value.slice(last, match.start) + by(match));
    last = match.end;
  }
  return result + value.slice(last);
}

/** Expands `$1`, `${name}`, and `$$` for a dollar; an unknown group is empty. */
function expanded(by: string, { groups, named }: Match): string {
  return by.replaceAll(
    /\$(?:\$|\{(\w+)\}|(\w+))/g,
    (whole, braced: string | undefined, bare: string | undefined) => {
      if (whole === '$$') return '$';
      const name = braced ?? bare ?? '';
      const at = /^\d+$/.test(name) ? Number(name) : named[name];
      return (at === undefined ? undefined : groups[at]) ?? '';
    },
  );
}

function splitBy(pattern: string, value: string, count: number): string[] {
  if (count === 0) return [];
  if (pattern !== '' && value === '') return [''];
  const result: string[] = [];
  let [begin, end] = [0, 0];
  for (const match of matches(pattern, value, -1)) {
    if (count > 0 && result.length === count - 1) break;
    ({ start: end } = match);
    if (match.end !== 0) result.push(value.slice(begin, end));
    begin = match.end;
  }
  if (end !== value.length) result.push(value.slice(begin));
  return result;
}

const urlParts =
  /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;

function parsedUrl(value: string): TemplateValue {
  const [, scheme = '', authority = '', path = '', query = '', fragment = ''] =
    urlParts.exec(value) ?? [];
  // eslint-disable-next-line no-control-regex -- Go rejects these.
  if (/[\u0000-\u001f\u007f]/.test(value)) return failed('unable to parse url');
  const at = authority.lastIndexOf('@');
  const host = authority.slice(at + 1);
  const isOpaque = scheme !== '' && authority === '' && path !== '' && !path.startsWith('/');
  return {
    scheme: scheme.toLowerCase(),
    host,
    hostname: /^\[(.*)\]/.exec(host)?.[1] ?? host.replace(/:\d*$/, ''),
    path: isOpaque ? '' : decoded(path),
    query,
    opaque: isOpaque ? path : '',
    fragment: decoded(fragment),
    userinfo: at === -1 ? '' : authority.slice(0, at),
  };
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return failed('unable to parse url: invalid URL escape');
  }
}

function joinedUrl(from: TemplateDict): string {
  const part = (name: string): string => {
    const value = Object.hasOwn(from, name) ? from[name] : '';
    if (typeof value === 'string') return value;
    const found = typeOfValue(value);
    return failed(`unable to parse ${name} key, must be of type string, but ${found} found`);
  };
  const [scheme, host, path, opaque] = [part('scheme'), part('host'), part('path'), part('opaque')];
  const [query, fragment, userinfo] = [part('query'), part('fragment'), part('userinfo')];
  const start = scheme === '' ? '' : `${scheme}:`;
  const end = `${query === '' ? '' : `?${query}`}${fragment === '' ? '' : `#${encodeURI(fragment)}`}`;
  if (opaque !== '') return `${start}${opaque}${end}`;
  const hasHost = scheme !== '' || host !== '' || userinfo !== '';
  const isSlashed = hasHost && (host !== '' || path !== '' || userinfo !== '');
  const who = userinfo === '' ? '' : `${userinfo}@`;
  const authority = isSlashed ? `//${who}${host}` : '';
  const gap = path !== '' && !path.startsWith('/') && host !== '' ? '/' : '';
  return `${start}${authority}${gap}${encodeURI(path)}${end}`;
}
