// What the module offers over HTTP.

import { Type } from 'millrace/contracts';
import { createSlackClient } from 'millrace/adapters/slack';
import { route, type ModuleWeb, type Route, type WebContext } from 'millrace/platform';
import { workspace } from '../config.ts';
import { resealSecrets } from '../reseal-secrets.ts';
import type { SecretBox } from '../secret-box.ts';
import { failureCodeOf } from '../decide-outcome.ts';
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
      summary: 'Seals every secret by the first of the keys that are configured',
      tag: 'slack: workspaces',
      access: 'admin',
      answers: {
        200: { description: 'How many', schema: Type.Object({ resealed: Type.Integer() }) },
      },
      handle: async (request) => ({
        body: { resealed: await resealSecrets(context, boxOf(secrets), tenantOf(request)) },
      }),
    }),
    route({
      method: 'POST',
      path: `${root}/workspaces/{code}/test`,
      summary: 'Asks Slack whether the token of a workspace is good',
      tag: 'slack: workspaces',
      access: 'admin',
      params: Type.Object({ code: idText }),
      answers: {
        200: {
          description: 'Yes and whose it is, or why not',
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
        const token = boxOf(secrets).open(config.token, { tenant, kind: 'workspace', code });
        await using slack = await createSlackClient({ apiUrl, clock: context.clock });
        const answer = await slack.test({ token, signal: request.signal });
        return answer.kind === 'ok'
          ? { body: { ok: true, team: answer.team } }
          : { body: { ok: false, code: failureCodeOf(answer.error) } };
      },
    }),
  ];
}
