// Generates valid and invalid inputs for every route from its schemas.

import { request as httpRequest, type Agent, type IncomingMessage } from 'node:http';
import fc from 'fast-check';
import type { Route } from '../../../platform/modules/route.ts';
import { codePoint } from '../code-point.ts';

/** The part of JSON Schema that our schemas use. */
export interface SchemaPart {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SchemaPart[];
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly required?: readonly string[];
  readonly items?: SchemaPart;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

const deep = (levels: number): unknown => {
  let value: unknown = 1;
  for (let at = 0; at < levels; at += 1) value = at % 2 === 0 ? [value] : { a: value };
  return value;
};

/** Values that clients should not send. */
const evil: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    ' ',
    '\0',
    'a\0b',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '..',
    '../../etc/passwd',
    '%00',
    '%',
    "' or 1=1 --",
    '\ud800',
    'a\udfff',
    '\u202e\u200b',
    '\u{1d54f}'.repeat(300),
    'x'.repeat(5_000),
    '*',
    '$all',
    '$millrace-tokens',
    '$millrace-audit',
    'a|b|c|d',
    '2026-11-16T00:00:00Z',
    '275760-09-13',
    '+275760-09-13T00:00:00.001Z',
    '-000001-01-01',
    '0000000000000001',
    '001fffffffffffff',
    'end',
    -1,
    0,
    1.5,
    1e308,
    2 ** 53,
    -(2 ** 53),
    null,
    true,
    false,
    [],
    {},
    [[[]]],
    { a: 1 },
    deep(200),
    { constructor: { prototype: { polluted: true } } },
    Array.from({ length: 2_000 }, () => 'a'),
  ),
  // JSON.parse creates the key, a literal would set the prototype.
  fc.constant(JSON.parse('{"__proto__":{"polluted":true}}') as unknown),
  fc.string({ unit: codePoint, maxLength: 60 }),
  fc.double(),
  fc.jsonValue({ maxDepth: 3 }),
);

const record = (parts: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
  fc.record({ ...parts }) as fc.Arbitrary<Record<string, unknown>>;

/** Existing names and ids, and typical values by field name. */
export interface Pool {
  readonly any: fc.Arbitrary<string>;
  readonly fields: Readonly<Record<string, fc.Arbitrary<unknown>>>;
}

/** Mostly valid values, sometimes with an invalid part. */
export function valueFor(
  schema: SchemaPart,
  pool: Pool,
  evilWeight = 1,
  name = '',
): fc.Arbitrary<unknown> {
  const usual = schema.type === 'array' ? undefined : pool.fields[name];
  const fitting = goodFor(schema, pool, evilWeight);
  const good = usual === undefined ? fitting : fc.oneof({ arbitrary: usual, weight: 6 }, fitting);
  return fc.oneof({ arbitrary: good, weight: 30 }, { arbitrary: evil, weight: evilWeight });
}

function goodFor(schema: SchemaPart, pool: Pool, evilWeight: number): fc.Arbitrary<unknown> {
  const { type, properties } = schema;
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) {
    return fc.oneof(...schema.anyOf.map((each) => goodFor(each, pool, evilWeight)));
  }
  if (type === 'object' && properties !== undefined) {
    return objectFor(schema, pool, evilWeight);
  }
  if (type === 'array') {
    return fc.array(valueFor(schema.items ?? {}, pool, evilWeight), { minLength: 1, maxLength: 2 });
  }
  if (type === 'integer' || type === 'number') {
    const { minimum = -5, maximum = 1_000 } = schema;
    return fc.integer({ min: minimum, max: Math.max(minimum, Math.min(maximum, 1_000)) });
  }
  if (type === 'boolean') return fc.boolean();
  if (type === 'string') return pool.any;
  return fc.jsonValue({ maxDepth: 2 });
}

function objectFor(
  { properties = {}, required = [] }: SchemaPart,
  pool: Pool,
  evilWeight: number,
): fc.Arbitrary<Record<string, unknown>> {
  const parts = Object.entries(properties).map(([name, part]): [string, fc.Arbitrary<unknown>] => {
    const value = valueFor(part, pool, evilWeight, name);
    return [name, required.includes(name) ? value : fc.option(value, { nil: undefined, freq: 2 })];
  });
  const extra = fc.oneof(
    { arbitrary: fc.constant(undefined), weight: 20 },
    fc.tuple(fc.constantFrom('__proto__', 'constructor', 'more'), evil),
  );
  return fc.tuple(record(Object.fromEntries(parts)), extra).map(([value, more]) => {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    return Object.fromEntries(more === undefined ? entries : [...entries, more]);
  });
}

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly isLong: boolean;
}

const brokenBodies = [
  '',
  '{',
  '[',
  'nul',
  '{"a":1}}',
  '\ufeff{}',
  '"\\ud800"',
  '{"__proto__":{"a":1}}',
  '[1e999]',
  '['.repeat(50_000),
  '{"a":'.repeat(50_000),
].map((text) => Buffer.from(text));
const tooLargeBody = Buffer.from(`"${'x'.repeat(1_100_000)}"`);
const brokenBytes = [Buffer.from([0xff, 0xfe, 0x7b]), Buffer.from([0xc0, 0x80]), Buffer.alloc(64)];

/** Empty values are not sent. */
const headerText = fc.oneof(
  fc.constantFrom('core', 'acme', '', 'a b', '__proto__', 'core|bank|x|1', 'acme|bank|x|1', '\xff'),
  fc.string({ maxLength: 30 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, '')),
  fc.constant('y'.repeat(3_000)),
);

export function requestsFor(routes: readonly Route[], pool: Pool): fc.Arbitrary<FuzzRequest> {
  return fc.constantFrom(...routes).chain((route) => requestFor(route, pool));
}

function requestFor(route: Route, pool: Pool): fc.Arbitrary<FuzzRequest> {
  const { body: schema } = route;
  const names = Array.from(route.path.matchAll(/\{(\w+)\}/g), ([, name = '']) => name);
  const params = fc.tuple(
    ...names.map((name) =>
      fc.oneof(
        { arbitrary: (pool.fields[name] ?? pool.any).map(String), weight: 8 },
        { arbitrary: pool.any, weight: 2 },
        { arbitrary: evil.map(String), weight: 1 },
      ),
    ),
  );
  const query =
    route.query === undefined
      ? fc.dictionary(fc.constantFrom('__proto__', 'limit', 'x'), evil, { maxKeys: 1 })
      : objectFor(route.query, pool, 2);
  const good =
    schema === undefined
      ? fc.constant(undefined)
      : valueFor(schema as SchemaPart, pool, 1).map((value) =>
          // Values that JSON cannot represent are not sent.
          Buffer.from(JSON.stringify(value) ?? ''),
        );
  const body = fc.oneof(
    { arbitrary: good, weight: 20 },
    { arbitrary: fc.constantFrom(...brokenBodies, ...brokenBytes), weight: 2 },
    { arbitrary: fc.constant(tooLargeBody), weight: 1 },
  );
  const rarely = fc.oneof({ arbitrary: fc.constant(''), weight: 8 }, headerText);
  const headers = fc.record({
    'x-tenant-id': fc.oneof({ arbitrary: fc.constant('core'), weight: 8 }, rarely),
    'idempotency-key': rarely,
    'x-correlation-id': rarely,
    'last-event-id': rarely,
    traceparent: rarely,
    tracestate: rarely,
  });
  const contentType = fc.oneof(
    { arbitrary: fc.constant('application/json'), weight: 15 },
    fc.constantFrom('text/plain', '', 'application/json; charset=utf-16', 'multipart/form-data'),
  );
  const method = fc.oneof(
    { arbitrary: fc.constant<string>(route.method), weight: 20 },
    fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
  );
  return fc.record({ params, query, body, headers, contentType, method }).map((input) => ({
    method: input.method,
    path: `${pathOf(route.path, input.params)}${searchOf(input.query)}`,
    headers: { ...input.headers, 'content-type': input.contentType },
    body: input.method === 'GET' || input.method === 'HEAD' ? undefined : input.body,
    isLong: route.isLong === true,
  }));
}

function pathOf(path: string, values: readonly string[]): string {
  let at = 0;
  return path.replaceAll(/\{\w+\}/g, () => {
    const value = values[at] ?? '';
    at += 1;
    // Encoded values are sent unchanged, even if the encoding is invalid.
    return value.startsWith('%') ? value : encodeURIComponent(value.slice(0, 2_000).toWellFormed());
  });
}

function searchOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const all = Array.isArray(value) ? value.slice(0, 50) : [value];
    for (const each of all) {
      const text = typeof each === 'object' ? JSON.stringify(each) : String(each);
      search.append(name, text.slice(0, 2_000));
    }
  }
  return search.size === 0 ? '' : `?${search.toString()}`;
}

export interface FuzzAnswer {
  readonly status: number;
  readonly text: string;
}

const followMs = 30;

/** Streams are read for a moment and then cancelled. */
export async function send(
  url: string,
  sent: FuzzRequest,
  { token, agent }: { readonly token: string | undefined; readonly agent: Agent },
): Promise<FuzzAnswer> {
  const { method, path, headers, body } = sent;
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, {
      agent,
      method,
      headers: {
        ...given,
        ...(body === undefined ? {} : { 'content-length': body.length }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    });
    request.on('error', reject);
    request.on('response', (response: IncomingMessage) => {
      let text = '';
      const done = (): void => resolve({ status: response.statusCode ?? 0, text });
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.on('end', done);
      response.on('error', done);
      if (response.headers['content-type'] === 'text/event-stream') {
        setTimeout(() => {
          done();
          response.destroy();
        }, followMs);
      }
    });
    request.end(body);
  });
}
