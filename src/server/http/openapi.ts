// The routes as an OpenAPI 3.1 document, from the schemas that validate the requests.

import type { ResponseInfo, Route } from '../../platform/modules/route.ts';

export interface OpenApiInfo {
  readonly title: string;
  readonly version: string;
  readonly description?: string;
}

export function openApiDocument(
  routes: readonly Route[],
  info: OpenApiInfo,
): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    Object.assign(paths[route.path] ?? {}, { [route.method.toLowerCase()]: operationOf(route) });
  }
  return {
    openapi: '3.1.0',
    info,
    // The origin of the document.
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: problemSchema },
    },
  };
}

/** Undefined fields are absent in the JSON document. */
function operationOf(route: Route): unknown {
  const { method, path, summary, description, tag, access, responses } = route;
  const body = route.bodyShown ?? route.body;
  const parameters = [
    ...parametersOf('path', route.params),
    ...parametersOf('query', route.query),
    ...Object.entries(headersOf(route)).map(([name, text]) => headerParameter(name, text)),
  ];
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^a-zA-Z0-9]+(.)?/g, (_all, next: string | undefined) => next?.toUpperCase() ?? '')}`,
    summary,
    description,
    tags: [tag],
    security: access === 'anonymous' ? [] : [{ bearer: [] }],
    'x-scope': access === 'anonymous' ? undefined : access,
    parameters: parameters.length === 0 ? undefined : parameters,
    requestBody: body && { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [status, responseOf(response)]),
      ),
      default: {
        description: 'Problem details: the error and its remedy',
        content:
          route.errors === undefined
            ? { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
            : { 'application/json': { schema: route.errors.schema } },
      },
    },
  };
}

/** Headers that a client may send, in addition to its credentials. */
export function headersOf({ access, headersShown = {} }: Route): Readonly<Record<string, string>> {
  return access === 'anonymous' ? headersShown : { ...tenantHeader, ...headersShown };
}

const tenantHeader = { 'X-Tenant-Id': 'The tenant, if the credentials are for all tenants.' };

function headerParameter(name: string, description: string): unknown {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

function responseOf(response: ResponseInfo): unknown {
  const { description, schema, contentType = 'application/json', headers = {} } = response;
  const described = Object.entries(headers).map(([name, text]): [string, unknown] => [
    name,
    { description: text, schema: { type: 'string' } },
  ]);
  return {
    description,
    headers: described.length === 0 ? undefined : Object.fromEntries(described),
    content:
      schema === undefined && contentType === 'application/json'
        ? undefined
        : { [contentType]: { schema } },
  };
}

function parametersOf(location: 'path' | 'query', schema: Route['params']): readonly unknown[] {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    in: location,
    required: location === 'path' || required.has(name),
    schema: property,
  }));
}

const problemSchema = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', description: 'The error code; docs/errors.md lists all codes.' },
    detail: { type: 'string' },
    remedy: { type: 'string' },
    retryable: { type: 'boolean' },
    details: { type: 'object', additionalProperties: true },
    requestId: { type: 'string' },
  },
  required: ['type', 'title', 'status', 'code', 'detail', 'remedy', 'retryable', 'requestId'],
};
