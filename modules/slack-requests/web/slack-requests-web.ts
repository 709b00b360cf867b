// The routes of the module, with those of secrets and of the connection test.

import { CommandRejected } from 'millrace/aggregates';
import { createSlackClient } from 'millrace/destinations/slack';
import { Type, type NewCommand } from 'millrace/contracts';
import { hasCode } from 'millrace/foundation';
import { route, type ModuleWeb, type Route, type WebContext } from 'millrace/platform';
import { resealApp, resealWorkspace } from '../config-events.ts';
import { workspace, type AppDocument, type WorkspaceDocument } from '../config.ts';
import { failureCodeOf } from '../decide-outcome.ts';
import { boundedContext } from '../fields.ts';
import type { SecretBox, SecretOwner } from '../secret-box.ts';
import { boxOf, configRoutes } from './config-routes.ts';
import { requestRoutes } from './request-routes.ts';
import { idText, notFound, root, tenantOf } from './slack-endpoint.ts';

export interface SlackWebOptions {
  readonly secrets: SecretBox | undefined;
  readonly apiUrl: string | undefined;
}

export function slackRequestsWeb(context: WebContext, options: SlackWebOptions): ModuleWeb {
  const { secrets } = options;
  return {
    routes: [
      ...requestRoutes(context),
      ...configRoutes(context, secrets),
      ...secretRoutes(context, options),
    ],
  };
}

function secretRoutes(context: WebContext, { secrets, apiUrl }: SlackWebOptions): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: `${root}/secrets/reseal`,
      summary: 'Encrypt every secret with the first configured key',
      tag: 'slack: workspaces',
      access: 'admin',
      responses: {
        200: {
          description: 'Number of secrets encrypted again',
          schema: Type.Object({ resealed: Type.Integer() }),
        },
      },
      handle: async (request) => ({
        body: { resealed: await resealSecrets(context, boxOf(secrets), tenantOf(request)) },
      }),
    }),
    route({
      method: 'POST',
      path: `${root}/workspaces/{code}/test`,
      summary: 'Test the token of a workspace',
      tag: 'slack: workspaces',
      access: 'admin',
      params: Type.Object({ code: idText }),
      responses: {
        200: {
          description: 'The team of the token, or the error code',
          schema: Type.Object({
            ok: Type.Boolean(),
            team: Type.Optional(Type.String()),
            code: Type.Optional(Type.String()),
          }),
        },
      },
      async handle(request) {
        const tenant = tenantOf(request);
        const { code } = request.params;
        const { config } = (await context.load(workspace, { tenant, id: code })).state;
        if (config === undefined) throw notFound('workspace');
        const token = tokenOf(boxOf(secrets), config.token, { tenant, kind: 'workspace', code });
        await using slack = await createSlackClient({ apiUrl, clock: context.clock });
        const response = await slack.test({ token, signal: request.signal });
        return response.kind === 'ok'
          ? { body: { ok: true, team: response.team } }
          : { body: { ok: false, code: failureCodeOf(response.error) } };
      },
    }),
  ];
}

function tokenOf(secrets: SecretBox, sealed: string, owner: SecretOwner): string {
  try {
    return secrets.open(sealed, owner);
  } catch (error) {
    throw hasCode(error, 'CONFIG_INVALID') ? secretUnreadable([`workspace ${owner.code}`]) : error;
  }
}

/** Key rotation: encrypts every secret of a tenant with the first key, so that the old key can be removed. */
export async function resealSecrets(
  { documents, handle }: Pick<WebContext, 'documents' | 'handle'>,
  secrets: SecretBox,
  tenant: string,
): Promise<number> {
  let count = 0;
  const unreadable: string[] = [];
  const reseal = (sealed: string, kind: string, code: string): string | undefined => {
    const owner = { tenant, kind, code };
    try {
      return secrets.isCurrent(sealed)
        ? undefined
        : secrets.seal(secrets.open(sealed, owner), owner);
    } catch (error) {
      if (!hasCode(error, 'CONFIG_INVALID')) throw error;
      unreadable.push(`${kind} ${code}`);
      return undefined;
    }
  };
  const send = async (id: string, command: NewCommand): Promise<void> => {
    await handle({ tenant, id, command });
    count += 1;
  };
  for await (const each of all<WorkspaceDocument>(documents, 'slack-workspace', tenant)) {
    const token = reseal(each.token, 'workspace', each.code);
    if (token !== undefined) await send(each.code, resealWorkspace({ token }));
  }
  for await (const { code, signingSecret: old } of all<AppDocument>(
    documents,
    'slack-app',
    tenant,
  )) {
    const signingSecret = old === undefined ? undefined : reseal(old, 'app', code);
    if (signingSecret !== undefined) await send(code, resealApp({ signingSecret }));
  }
  if (unreadable.length > 0) throw secretUnreadable(unreadable, { resealed: count });
  return count;
}

function secretUnreadable(
  owners: readonly string[],
  details: Readonly<Record<string, unknown>> = {},
): CommandRejected {
  const some = owners.slice(0, 10).join(', ');
  const message = `Cannot decrypt the secret of ${some}. Set the secret again, or add its key.`;
  return new CommandRejected('secret-unreadable', message, {
    ...details,
    owners: owners.slice(0, 100),
  });
}

async function* all<Document>(
  documents: WebContext['documents'],
  aggregate: string,
  tenant: string,
): AsyncGenerator<Document> {
  let cursor: string | undefined;
  do {
    const page = await documents({ bc: boundedContext, aggregate }).bySet(tenant, 'all', {
      cursor,
    });
    for (const { document } of page.items) yield document as Document;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
