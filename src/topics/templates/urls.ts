// Functions of templates over URLs.

import { dict, failed, text, type TemplateFunctions } from './arguments.ts';
import { typeOfValue, type TemplateDict, type TemplateValue } from './values.ts';

export const urlFunctions: TemplateFunctions = {
  urlParse: (value) => parsedUrl(text(value)),
  urlJoin: (value) => joinedUrl(dict(value)),
};

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
  const end = `${query === '' ? '' : `?${query}`}${fragment === '' ? '' : `#${encodeURI(fragment.toWellFormed())}`}`;
  if (opaque !== '') return `${start}${opaque}${end}`;
  const hasHost = scheme !== '' || host !== '' || userinfo !== '';
  const isSlashed = hasHost && (host !== '' || path !== '' || userinfo !== '');
  const who = userinfo === '' ? '' : `${userinfo}@`;
  const authority = isSlashed ? `//${who}${host}` : '';
  const gap = path !== '' && !path.startsWith('/') && host !== '' ? '/' : '';
  return `${start}${authority}${gap}${encodeURI(path.toWellFormed())}${end}`;
}
