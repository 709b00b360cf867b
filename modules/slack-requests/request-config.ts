// Loads the configuration of a request by its codes: from the read models, or from the aggregates if they were lost. Then
// selects the channel in the order of the requirement document.

import type { ModuleContext } from 'millrace/platform';
import type { AppConfig, ChannelConfig, TemplateConfig, WorkspaceConfig } from './config-events.ts';
import { app, channel, template, workspace, type ConfigState } from './config.ts';
import { boundedContext } from './fields.ts';
import type { RequestContent } from './message-request-events.ts';
import { messageOf, renderTemplate, type Rendered } from './render-template.ts';

export type Prepared =
  | {
      readonly kind: 'ready';
      readonly workspace: WorkspaceConfig;
      readonly app: AppConfig | undefined;
      readonly channelId: string;
      readonly message: Rendered;
    }
  | { readonly kind: 'failed'; readonly code: string; readonly reason: string };

type Context = Pick<ModuleContext, 'documents' | 'load'>;
type Failed = Extract<Prepared, { readonly kind: 'failed' }>;

export async function prepareRequest(
  context: Context,
  tenant: string,
  content: RequestContent,
): Promise<Prepared> {
  const { workspaceCode, channelCode, templateCode, recipient, data } = content;
  const read = <Config extends { readonly enabled: boolean }>(
    aggregate: ConfigAggregate<Config>,
    code: string,
  ): Promise<Config | Failed> => readConfig(context, aggregate, { tenant, code });
  const workspaceConfig = await read<WorkspaceConfig>(workspace, workspaceCode);
  if (isFailed(workspaceConfig)) return workspaceConfig;
  const { appCode } = workspaceConfig;
  const [rules, target, words] = await Promise.all([
    appCode === undefined ? undefined : read<AppConfig>(app, appCode),
    channelCode === undefined ? undefined : read<ChannelConfig>(channel, channelCode),
    templateCode === undefined ? undefined : read<TemplateConfig>(template, templateCode),
  ]);
  if (isFailed(rules)) return rules;
  if (isFailed(target)) return target;
  if (isFailed(words)) return words;
  const channelId = target?.channelId ?? recipient ?? workspaceConfig.defaultChannelId;
  if (channelId === undefined) {
    return failed(
      'channel-missing',
      'The request has no channel and no recipient, and the workspace has no default channel.',
    );
  }
  const rendering = words === undefined ? messageOf(data) : renderTemplate(words, data);
  if (rendering.kind === 'failed') return rendering;
  return {
    kind: 'ready',
    workspace: workspaceConfig,
    app: rules,
    channelId,
    message: rendering.message,
  };
}

type ConfigAggregate<Config> = Parameters<typeof loadConfig<Config>>[1];

async function readConfig<Config extends { readonly enabled: boolean }>(
  context: Context,
  aggregate: ConfigAggregate<Config>,
  { tenant, code }: { readonly tenant: string; readonly code: string },
): Promise<Config | Failed> {
  const what = aggregate.name.replace('slack-', '');
  const documents = context.documents({ bc: boundedContext, aggregate: aggregate.name });
  const found = (await documents.get(tenant, code))?.document as Config | undefined;
  // Not projected yet, or lost.
  const config = found ?? (await loadConfig(context, aggregate, { tenant, id: code }));
  if (config === undefined) return failed(`${what}-unknown`, `Unknown ${what} ${code}.`);
  if (!config.enabled) return failed(`${what}-disabled`, `The ${what} ${code} is disabled.`);
  return config;
}

async function loadConfig<Config>(
  { load }: Context,
  aggregate: {
    readonly name: string;
    readonly category: string;
    readonly initial: ConfigState<Config>;
  },
  address: { readonly tenant: string; readonly id: string },
): Promise<Config | undefined> {
  return (await load<ConfigState<Config>>(aggregate, address)).state.config;
}

function isFailed(value: object | undefined): value is Failed {
  return value !== undefined && 'kind' in value && value.kind === 'failed';
}

function failed(code: string, reason: string): Failed {
  return { kind: 'failed', code, reason };
}
