// Four aggregates of one kind: the id is the code, to configure says all that there is to say, and what is so
// already is no event.

import { isDeepStrictEqual } from 'node:util';
import { defineAggregate, Refused } from 'millrace/aggregates';
import {
  appConfigured,
  appRemoved,
  appResealed,
  channelConfigured,
  channelRemoved,
  configureApp,
  configureChannel,
  configureTemplate,
  configureWorkspace,
  removeApp,
  removeChannel,
  removeTemplate,
  removeWorkspace,
  resealApp,
  resealWorkspace,
  templateConfigured,
  templateRemoved,
  workspaceConfigured,
  workspaceRemoved,
  workspaceResealed,
  type AppConfig,
  type ChannelConfig,
  type TemplateConfig,
  type WorkspaceConfig,
} from './config-events.ts';
import { boundedContext } from './fields.ts';
import { templateProblem } from './render-template.ts';

/** Undefined: there is none. */
export interface ConfigState<Config> {
  readonly config?: Config | undefined;
}

const none = <Config>(): ConfigState<Config> => ({});

export const workspace = defineAggregate({
  bc: boundedContext,
  name: 'slack-workspace',
  version: 1,
  events: [workspaceConfigured, workspaceResealed, workspaceRemoved],
  commands: [configureWorkspace, resealWorkspace, removeWorkspace],
  initial: none<WorkspaceConfig>(),
  evolve: {
    'slack-workspace.configured.v1': (_state, config) => ({ config }),
    'slack-workspace.resealed.v1': ({ config }, { token }) => ({
      config: config === undefined ? config : { ...config, token },
    }),
    'slack-workspace.removed.v1': none,
  },
  decide: {
    'slack-workspace.configure': (config, state) =>
      isDeepStrictEqual(config, state.config) ? [] : workspaceConfigured(config),
    'slack-workspace.reseal': (sealed, state, { id }) => {
      known('workspace', id, state);
      return workspaceResealed(sealed);
    },
    'slack-workspace.remove': (_payload, state, { id }) => {
      known('workspace', id, state);
      return workspaceRemoved({});
    },
  },
});

export const app = defineAggregate({
  bc: boundedContext,
  name: 'slack-app',
  version: 1,
  events: [appConfigured, appResealed, appRemoved],
  commands: [configureApp, resealApp, removeApp],
  initial: none<AppConfig>(),
  evolve: {
    'slack-app.configured.v1': (_state, config) => ({ config }),
    'slack-app.resealed.v1': ({ config }, { signingSecret }) => ({
      config: config === undefined ? config : { ...config, signingSecret },
    }),
    'slack-app.removed.v1': none,
  },
  decide: {
    'slack-app.configure': (config, state) =>
      isDeepStrictEqual(config, state.config) ? [] : appConfigured(config),
    'slack-app.reseal': (sealed, state, { id }) => {
      known('app', id, state);
      return appResealed(sealed);
    },
    'slack-app.remove': (_payload, state, { id }) => {
      known('app', id, state);
      return appRemoved({});
    },
  },
});

export const channel = defineAggregate({
  bc: boundedContext,
  name: 'slack-channel',
  version: 1,
  events: [channelConfigured, channelRemoved],
  commands: [configureChannel, removeChannel],
  initial: none<ChannelConfig>(),
  evolve: {
    'slack-channel.configured.v1': (_state, config) => ({ config }),
    'slack-channel.removed.v1': none,
  },
  decide: {
    'slack-channel.configure': (config, state) =>
      isDeepStrictEqual(config, state.config) ? [] : channelConfigured(config),
    'slack-channel.remove': (_payload, state, { id }) => {
      known('channel', id, state);
      return channelRemoved({});
    },
  },
});

export const template = defineAggregate({
  bc: boundedContext,
  name: 'slack-template',
  version: 1,
  events: [templateConfigured, templateRemoved],
  commands: [configureTemplate, removeTemplate],
  initial: none<TemplateConfig>(),
  evolve: {
    'slack-template.configured.v1': (_state, config) => ({ config }),
    'slack-template.removed.v1': none,
  },
  decide: {
    'slack-template.configure': (config, state) => {
      const problem = templateProblem(config);
      if (problem !== undefined) throw new Refused('slack-template-invalid', problem);
      return isDeepStrictEqual(config, state.config) ? [] : templateConfigured(config);
    },
    'slack-template.remove': (_payload, state, { id }) => {
      known('template', id, state);
      return templateRemoved({});
    },
  },
});

function known(what: string, id: string, { config }: ConfigState<unknown>): void {
  if (config === undefined) throw new Refused(`slack-${what}-unknown`, `there is no ${what} ${id}`);
}
