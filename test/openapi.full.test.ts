// The OpenAPI document of everything that `npm start` serves.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import config from '../millrace.config.ts';
import { createPlatform } from '../src/platform/index.ts';
import { startApi } from '../src/server/api/index.ts';

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[] | undefined;
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

interface Document {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: object;
}

async function readDocument(): Promise<Document> {
  await using platform = await createPlatform({ ...config, engines: { store: 'memory:' } });
  await using api = await startApi(platform, { port: 0 });
  return (await (await fetch(`${api.url}/openapi.json`)).json()) as Document;
}

/** Every schema in the document, with its path. */
function* schemasIn(value: unknown, path = ''): Generator<readonly [string, object]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = `${path}/${name}`;
    if (name === 'schema') yield [at, inner as object];
    else yield* schemasIn(inner, at);
  }
}

const document = await readDocument();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const find = (method: string, path: string): Operation => {
  const found = document.paths[path]?.[method];
  assert.ok(found, `${method} ${path}`);
  return found;
};
const headersOf = ({ parameters = [] }: Operation): readonly string[] =>
  parameters.flatMap(({ name, in: location }) => (location === 'header' ? [name] : []));

test('every operation has a unique id, its parameters, its responses and its security', () => {
  assert.equal(document.openapi, '3.1.0');
  assert.deepEqual(document.servers, [{ url: '/' }]);
  assert.ok(operations.length > 100);
  const ids = operations.map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length);
  for (const { path, operation } of operations) {
    const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
    const { parameters = [], responses, security } = operation;
    const declared = parameters.flatMap(({ name, in: at }) => (at === 'path' ? [name] : []));
    assert.deepEqual(declared, inPath, path);
    const locations = parameters.map(({ name, in: at }) => `${at} ${name.toLowerCase()}`);
    assert.equal(new Set(locations).size, locations.length, path);
    assert.ok(
      Object.values(responses).every(({ description }) => description.length > 0),
      path,
    );
    assert.ok(Array.isArray(security), path);
  }
});

test('every schema is valid JSON Schema 2020-12, and its references exist', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const schemas = [...schemasIn(document)];
  assert.ok(schemas.length > 200);
  for (const [path, schema] of schemas) {
    // References start at the root of the document.
    const { components } = document;
    assert.doesNotThrow(() => void ajv.compile({ ...schema, components }), path);
  }
});

test('the document lists the headers that change the effect of a request', () => {
  const command = find('post', '/api/v1/commands/payment.request');
  assert.deepEqual(headersOf(command), [
    'X-Tenant-Id',
    'Idempotency-Key',
    'X-Correlation-Id',
    'traceparent',
  ]);
  for (const path of ['/api/v1/events/subscribe', '/api/v1/streams/{stream}/subscribe']) {
    assert.ok(headersOf(find('get', path)).includes('Last-Event-ID'), path);
  }
  for (const path of ['/api/v1/chats/{id}/messages', '/api/chats/{id}/messages']) {
    const post = find('post', path);
    assert.ok(headersOf(post).includes('Idempotency-Key'), path);
    const { headers } = post.responses['429'] as { readonly headers?: object };
    assert.ok(Object.keys(headers ?? {}).includes('Retry-After'), path);
  }
});
