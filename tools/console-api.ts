// Generates the types of the routes that the console calls, from the OpenAPI document.

import { createPlatform } from '../src/platform/index.ts';
import { startApi } from '../src/server/api/start-api.ts';

/** The routes that the console calls. */
export const consoleRoutes = [
  'GET /console/session',
  'POST /console/session',
  'DELETE /console/session',
  'GET /admin/audit',
  'GET /admin/destinations',
  'POST /admin/destinations/test',
  'GET /admin/doctor',
  'GET /admin/failures',
  'GET /admin/failures/{fingerprint}',
  'GET /admin/dlq',
  'GET /admin/dlq/{id}',
  'POST /admin/dlq/{id}/discard',
  'POST /admin/dlq/{id}/replay',
  'GET /admin/parked-streams',
  'GET /admin/parked-streams/{letter}/events',
  'GET /admin/processes',
  'POST /admin/dlq/discard',
  'POST /admin/dlq/replay',
  'POST /admin/jobs/types/{type}/pause',
  'POST /admin/jobs/types/{type}/resume',
  'POST /admin/jobs/{id}/cancel',
  'POST /admin/failures/{fingerprint}/decision',
  'POST /admin/bulk/preview',
  'GET /admin/bulk/{id}/items',
  'POST /admin/outbox/retry',
  'POST /admin/outbox/discard',
  'POST /admin/bulk',
  'GET /admin/bulk/{id}',
  'POST /admin/bulk/{id}/cancel',
  'POST /admin/jobs/{id}/retry',
  'GET /admin/outbox',
  'GET /admin/outbox/counts',
  'GET /admin/outbox/{id}',
  'POST /admin/outbox/pause',
  'POST /admin/outbox/replay',
  'POST /admin/outbox/resume',
  'GET /admin/outbox/{id}/attempts',
  'GET /admin/overview',
  'GET /admin/projections',
  'GET /admin/resolve/{id}',
  'GET /admin/subscriptions',
  'GET /admin/subscriptions/{name}',
  'POST /admin/subscriptions/{name}/pause',
  'POST /admin/subscriptions/{name}/resume',
  'GET /admin/system',
  'GET /admin/tokens',
  'POST /admin/tokens/{token}/revoke',
  'GET /admin/traces/{correlationId}',
  'GET /api/v1/events',
  'GET /api/v1/events/search',
  'GET /api/v1/jobs',
  'GET /api/v1/jobs/counts',
  'GET /api/v1/jobs/types',
  'GET /api/v1/jobs/workers',
  'GET /api/v1/jobs/{id}',
  'GET /api/v1/streams/{stream}/events',
] as const;

/** Longer types have a line for each field. */
const lineCharsMax = 100;

interface Schema {
  readonly title?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
}

interface Operation {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export async function consoleApiTypes(): Promise<string> {
  await using platform = await createPlatform({ engines: { store: 'memory:' } });
  await using api = await startApi(platform, { port: 0 });
  const document = (await (await fetch(`${api.url}/openapi.json`)).json()) as OpenApi;
  const named: NamedTypes = new Map();
  const lines = consoleRoutes.map((name) => {
    const [method = '', path = ''] = name.split(' ');
    const operation = document.paths[path]?.[method.toLowerCase()];
    if (operation === undefined) throw new Error(`the API has no route ${name}`);
    return `  '${name}': ${routeType(operation, named)};\n`;
  });
  const types = [...named].map(([name, type]) => `export interface ${name} ${type}\n\n`);
  return `// Generated from the OpenAPI document by \`npm run generate\`.\n\n${types.join('')}export interface Api {\n${lines.join('')}}\n`;
}

/** Objects with a title, by title. */
type NamedTypes = Map<string, string>;

function routeType(
  { parameters = [], requestBody, responses }: Operation,
  named: NamedTypes,
): string {
  const fieldsIn = (location: string): Schema => {
    const found = parameters.filter((each) => each.in === location);
    return {
      type: 'object',
      properties: Object.fromEntries(found.map((each) => [each.name, each.schema])),
      required: found.filter((each) => each.required).map((each) => each.name),
    };
  };
  const response = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, each]) => each.content?.['application/json']?.schema)
    .find((schema) => schema !== undefined);
  const body = requestBody?.content['application/json']?.schema;
  return `{
    readonly params: ${typeOf(fieldsIn('path'), 2, named)};
    readonly query: ${typeOf(fieldsIn('query'), 2, named)};
    readonly body: ${body === undefined ? 'undefined' : typeOf(body, 2, named)};
    readonly response: ${response === undefined ? 'undefined' : typeOf(response, 2, named)};
  }`;
}

function typeOf(schema: Schema, depth: number, named: NamedTypes): string {
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (schema.anyOf !== undefined) {
    return schema.anyOf.map((each) => typeOf(each, depth, named)).join(' | ');
  }
  if (Array.isArray(schema.type)) {
    return schema.type.map((type: string) => typeOf({ ...schema, type }, depth, named)).join(' | ');
  }
  if (schema.type === 'array') {
    return `readonly (${schema.items === undefined ? 'unknown' : typeOf(schema.items, depth, named)})[]`;
  }
  if (schema.type === 'object') return namedType(schema, depth, named);
  const simple = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean' };
  return schema.type === 'null'
    ? 'null'
    : (simple[schema.type as keyof typeof simple] ?? 'unknown');
}

function namedType(schema: Schema, depth: number, named: NamedTypes): string {
  const { title } = schema;
  if (title === undefined) return objectType(schema, depth, named);
  const type = objectType(schema, 0, named);
  if ((named.get(title) ?? type) !== type) throw new Error(`two types have the title ${title}`);
  named.set(title, type);
  return title;
}

function objectType(schema: Schema, depth: number, named: NamedTypes): string {
  const { properties = {}, required = [], patternProperties = {} } = schema;
  const [values] = Object.values(patternProperties);
  if (values !== undefined) return `Readonly<Record<string, ${typeOf(values, depth, named)}>>`;
  const pad = '  '.repeat(depth + 1);
  const fields = Object.entries(properties).map(([name, field]) => {
    const isRequired = required.includes(name);
    const key = /^\w+$/.test(name) ? name : `'${name}'`;
    const type = typeOf(field, depth + 1, named);
    return `readonly ${key}${isRequired ? '' : '?'}: ${type}${isRequired ? '' : ' | undefined'};`;
  });
  if (fields.length === 0) return 'Readonly<Record<string, unknown>>';
  const line = `{ ${fields.join(' ')} }`;
  if (line.length <= lineCharsMax && !line.includes('\n')) return line;
  return `{\n${fields.map((field) => `${pad}${field}\n`).join('')}${'  '.repeat(depth)}}`;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
}
