// Routes of the configuration. Secrets are encrypted here, before any other code sees them, and never returned.

import { CommandRejected } from 'millrace/aggregates';
import { Type, type NewCommand } from 'millrace/contracts';
import { MillraceError } from 'millrace/foundation';
import { route, type Route, type WebContext } from 'millrace/platform';
import type { Projection } from 'millrace/projections';
import type { TObject } from 'typebox';
import {
  configureApp,
  configureChannel,
  configureTemplate,
  configureWorkspace,
  removeApp,
  removeChannel,
  removeTemplate,
  removeWorkspace,
} from '../config-events.ts';
import {
  appProjection,
  channelProjection,
  templateProjection,
  workspaceProjection,
} from '../config.ts';
import { boundedContext, slackRequestLimits } from '../fields.ts';
import type { SecretBox } from '../secret-box.ts';
import {
  headersShown,
  idText,
  notFound,
  pageQuery,
  root,
  send,
  settled,
  tenantOf,
} from './slack-endpoint.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Kind {
  /** The plural in paths, and the singular. */
  readonly path: string;
  readonly one: string;
  readonly projection: Projection;
  readonly body: TObject;
  /** The field of the body that is a secret. */
  readonly secret?: string | undefined;
  configure(fields: Fields): NewCommand;
  remove(): NewCommand;
}

const name = Type.String({ minLength: 1, maxLength: 200 });
const slackId = Type.String({ pattern: '^[CGDUW][A-Z0-9]{1,20}$' });
const secret = Type.String({ minLength: 1, maxLength: 1_000 });
const enabled = Type.Optional(Type.Boolean({ description: 'Default: true.' }));
const object = (properties: Parameters<typeof Type.Object>[0]): TObject =>
  Type.Object(properties, { additionalProperties: false });

// The route validates the body with this schema, and the command with its own.
const kinds: readonly Kind[] = [
  {
    path: 'workspaces',
    one: 'workspace',
    projection: workspaceProjection,
    secret: 'token',
    body: object({
      name,
      token: Type.Optional(secret),
      defaultChannelId: Type.Optional(slackId),
      appCode: Type.Optional(idText),
      enabled,
    }),
    configure: (fields) => configureWorkspace(fields as Parameters<typeof configureWorkspace>[0]),
    remove: () => removeWorkspace({}),
  },
  {
    path: 'apps',
    one: 'app',
    projection: appProjection,
    secret: 'signingSecret',
    body: object({
      name,
      signingSecret: Type.Optional(secret),
      attemptsMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
      channelIntervalMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 60_000 })),
      enabled,
    }),
    configure: (fields) => configureApp(fields as Parameters<typeof configureApp>[0]),
    remove: () => removeApp({}),
  },
  {
    path: 'channels',
    one: 'channel',
    projection: channelProjection,
    body: object({ name: Type.Optional(name), channelId: slackId, enabled }),
    configure: (fields) => configureChannel(fields as Parameters<typeof configureChannel>[0]),
    remove: () => removeChannel({}),
  },
  {
    path: 'templates',
    one: 'template',
    projection: templateProjection,
    body: object({
      text: Type.String({ minLength: 1, maxLength: slackRequestLimits.textCharsMax }),
      blocks: Type.Optional(
        Type.Array(Type.Record(Type.String(), Type.Any()), {
          minItems: 1,
          maxItems: slackRequestLimits.blocksMax,
        }),
      ),
      enabled,
    }),
    configure: (fields) => configureTemplate(fields as Parameters<typeof configureTemplate>[0]),
    remove: () => removeTemplate({}),
  },
];

export function configRoutes(
  context: WebContext,
  secrets: SecretBox | undefined,
): readonly Route[] {
  return kinds.flatMap((kind) => routesOf(context, secrets, kind));
}

function routesOf(
  context: WebContext,
  secrets: SecretBox | undefined,
  kind: Kind,
): readonly Route[] {
  const { path, one, projection, body } = kind;
  const tag = `slack: ${path}`;
  const params = Type.Object({ code: idText });
  const documents = context.documents({ bc: boundedContext, aggregate: `slack-${one}` });
  const schema = Type.Object({}, { additionalProperties: true });

  /** Encrypts the given secret, or keeps the stored one. */
  async function sealedFields(tenant: string, code: string, fields: Fields): Promise<Fields> {
    if (kind.secret === undefined) return fields;
    const given = fields[kind.secret];
    if (typeof given === 'string') {
      const sealed = boxOf(secrets).seal(given, { tenant, kind: one, code });
      return { ...fields, [kind.secret]: sealed };
    }
    const before = (await documents.get(tenant, code))?.document as Fields | undefined;
    const storedSecret = before?.[kind.secret];
    if (storedSecret !== undefined) return { ...fields, [kind.secret]: storedSecret };
    if (one !== 'workspace') return fields;
    throw new MillraceError('REQUEST_INVALID', 'A new workspace needs a token.', {
      details: { field: kind.secret },
    });
  }

  return [
    route({
      method: 'PUT',
      path: `${root}/${path}/{code}`,
      summary: `Configure ${one === 'app' ? 'an' : 'a'} ${one}`,
      tag,
      access: 'admin',
      headersShown,
      params,
      body,
      responses: { 200: { description: 'The configuration, without secrets', schema } },
      async handle(request) {
        const { code } = request.params;
        const fields = await sealedFields(tenantOf(request), code, request.body as Fields);
        const outcome = await send(context, request, { id: code, command: kind.configure(fields) });
        await settled(context, projection, outcome);
        return { body: withoutSecret(kind, { code, ...fields }) };
      },
    }),
    route({
      method: 'GET',
      path: `${root}/${path}/{code}`,
      summary: `Get ${one === 'app' ? 'an' : 'a'} ${one}, without secrets`,
      tag,
      access: 'read',
      params,
      responses: { 200: { description: 'The configuration', schema } },
      async handle(request) {
        const found = await documents.get(tenantOf(request), request.params.code);
        if (found === undefined) throw notFound(one);
        return { body: withoutSecret(kind, found.document as Fields) };
      },
    }),
    route({
      method: 'GET',
      path: `${root}/${path}`,
      summary: `List ${path}, last changed first, without secrets`,
      tag,
      access: 'read',
      query: Type.Object(pageQuery),
      responses: {
        200: {
          description: 'A page',
          schema: Type.Object({ items: Type.Array(schema), cursor: Type.Optional(Type.String()) }),
        },
      },
      async handle(request) {
        const { limit = 50, cursor } = request.query;
        const tenant = tenantOf(request);
        const page = await request.memory.page({ limit, cursor }, (part) =>
          documents.byRange(tenant, 'updated', { ...part, direction: 'descending' }),
        );
        const items = page.items.map(({ document }) => withoutSecret(kind, document as Fields));
        return { body: { items, cursor: page.cursor } };
      },
    }),
    route({
      method: 'DELETE',
      path: `${root}/${path}/{code}`,
      summary: `Remove ${one === 'app' ? 'an' : 'a'} ${one}`,
      tag,
      access: 'admin',
      headersShown,
      params,
      responses: { 204: { description: 'Removed' } },
      async handle(request) {
        const { code } = request.params;
        const outcome = await send(context, request, { id: code, command: kind.remove() });
        await settled(context, projection, outcome);
        return { status: 204 };
      },
    }),
  ];
}

export function boxOf(secrets: SecretBox | undefined): SecretBox {
  if (secrets !== undefined) return secrets;
  throw new CommandRejected(
    'secret-keys-missing',
    'Secrets need an encryption key. Set SLACK_SECRET_KEYS.',
  );
}

function withoutSecret({ secret: hidden }: Kind, fields: Fields): Fields {
  if (hidden === undefined) return fields;
  const { [hidden]: storedSecret, ...rest } = fields;
  return {
    ...rest,
    [`has${hidden.slice(0, 1).toUpperCase()}${hidden.slice(1)}`]: storedSecret !== undefined,
  };
}
