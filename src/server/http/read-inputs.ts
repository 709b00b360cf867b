// Reads the inputs of a request within limits, and validates them with the schemas of the route.

import type { IncomingMessage } from 'node:http';
import type { TObject, TSchema } from 'typebox';
import { compileSchema, type Schema } from '../../contracts/schema.ts';
import { MillraceError } from '../../foundation/error.ts';
import { parseJson } from '../../foundation/parse-json.ts';

const compiled = new WeakMap<object, Schema<unknown>>();

/** Compiled at the first request, so that a server with many routes starts quickly. */
export function checked(where: string, schema: TSchema, value: unknown): unknown {
  let known = compiled.get(schema);
  if (known === undefined) {
    known = compileSchema(schema);
    compiled.set(schema, known);
  }
  if (known.check(value)) return value;
  const problems = known.problems(value);
  const [first] = problems;
  const path = first === undefined || first.path === '' ? '' : ` ${first.path}`;
  throw new MillraceError(
    'REQUEST_INVALID',
    `${where}${path} ${first?.message ?? 'is not valid'}`,
    { details: { where, problems } },
  );
}

/** Query strings contain strings only; the schema parses numbers and booleans. */
export function queryOf(search: URLSearchParams, schema: TObject): Record<string, unknown> {
  const { properties } = schema;
  // A Map-like object, so that a name such as __proto__ is harmless.
  return Object.fromEntries(
    Array.from(new Set(search.keys()), (name): [string, unknown] => {
      const all = search.getAll(name);
      if (all.some((text) => text.includes('\0'))) throw invalid(name, 'contains a null character');
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      const type = property !== undefined && 'type' in property ? property.type : undefined;
      if (type === 'array') return [name, all];
      if (all.length > 1) throw invalid(name, 'occurs more than once');
      return [name, valueOf(all[0] ?? '', type)];
    }),
  );
}

function valueOf(text: string, type: unknown): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (type !== 'integer' && type !== 'number') return text;
  return /^-?\d{1,16}(\.\d{1,16})?$/.test(text) ? Number(text) : text;
}

/** JSON in UTF-8, with a size limit. */
export async function readJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json' && type?.endsWith('+json') !== true) {
    throw new MillraceError('MEDIA_TYPE_UNKNOWN', 'send JSON as application/json', {
      details: { field: 'content-type' },
    });
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new MillraceError('MEDIA_TYPE_UNKNOWN', 'send the body without a content encoding', {
      details: { field: 'content-encoding' },
    });
  }
  const text = utf8(await readBytes(request, bytesMax));
  try {
    return parseJson(text);
  } catch (error) {
    const reason = error instanceof RangeError ? error.message : 'not JSON';
    throw new MillraceError('REQUEST_INVALID', `the body is ${reason}`, { cause: error });
  }
}

/** Uses stream events, because iterating the stream is several times slower. */
function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (error: Error): void => {
      request.off('data', take);
      // The rest is not read: the connection is closed after the response.
      request.pause();
      reject(error);
    };
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > bytesMax) fail(tooLarge(bytesMax));
      else chunks.push(chunk);
    };
    if (Number(request.headers['content-length'] ?? 0) > bytesMax) {
      reject(tooLarge(bytesMax));
      return;
    }
    request.on('data', take);
    request.once('end', () =>
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
    );
    // The client closed the connection: not an error of the server.
    request.once('error', (cause) =>
      fail(new MillraceError('REQUEST_INVALID', 'the body is not complete', { cause })),
    );
  });
}

const strict = new TextDecoder('utf-8', { fatal: true });

function utf8(bytes: Buffer): string {
  try {
    return strict.decode(bytes);
  } catch (error) {
    throw new MillraceError('REQUEST_INVALID', 'the body is not UTF-8', { cause: error });
  }
}

function tooLarge(bytesMax: number): MillraceError {
  return new MillraceError('REQUEST_TOO_LARGE', `the body exceeds ${bytesMax} bytes`, {
    details: { bytesMax },
  });
}

function invalid(field: string, reason: string): MillraceError {
  return new MillraceError('REQUEST_INVALID', `${field} ${reason}`, { details: { field } });
}
