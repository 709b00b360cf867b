// The four configuration aggregates and their read models. The id is the code; configuring replaces everything, and an
// unchanged configuration causes no event.

import { isDeepStrictEqual } from 'node:util';
import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
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

/** Undefined: not configured. */
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
      if (problem !== undefined) throw new CommandRejected('slack-template-invalid', problem);
      return isDeepStrictEqual(config, state.config) ? [] : templateConfigured(config);
    },
    'slack-template.remove': (_payload, state, { id }) => {
      known('template', id, state);
      return templateRemoved({});
    },
  },
});

function known(what: string, id: string, { config }: ConfigState<unknown>): void {
  if (config === undefined)
    throw new CommandRejected(`slack-${what}-unknown`, `Unknown ${what} ${id}.`);
}

// `app:{core}:notification-slack:slack-workspace:v1:<code>` and similar keys: the worker finds
// the configuration of a code by them.
interface Stamped {
  readonly code: string;
  readonly updatedAt: string;
}

/** Contains the encrypted token. */
export type WorkspaceDocument = WorkspaceConfig & Stamped;
export type AppDocument = AppConfig & Stamped;
export type ChannelDocument = ChannelConfig & Stamped;
export type TemplateDocument = TemplateConfig & Stamped;

const modelOf = <Document extends Stamped>(aggregate: string) =>
  readModel<Document>({
    bc: boundedContext,
    aggregate,
    version: 1,
    ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
  });

const configured = <Config extends object>(
  _before: unknown,
  { aggregate, payload, occurredAt }: ProjectedEvent<Config>,
): Config & Stamped => ({ ...payload, code: aggregate.id, updatedAt: occurredAt });

const resealed = <Document extends Stamped, Sealed extends object>(
  before: Document | null,
  { payload, occurredAt }: ProjectedEvent<Sealed>,
): Document | null => (before === null ? null : { ...before, ...payload, updatedAt: occurredAt });

export const workspaceProjection = projection({
  name: 'sub:slack-requests:workspace-projection:v1',
  readModel: modelOf<WorkspaceDocument>('slack-workspace'),
  on: {
    'slack-workspace.configured.v1': configured<WorkspaceConfig>,
    'slack-workspace.resealed.v1': resealed<WorkspaceDocument, { readonly token: string }>,
    'slack-workspace.removed.v1': () => null,
  },
});

export const appProjection = projection({
  name: 'sub:slack-requests:app-projection:v1',
  readModel: modelOf<AppDocument>('slack-app'),
  on: {
    'slack-app.configured.v1': configured<AppConfig>,
    'slack-app.resealed.v1': resealed<AppDocument, { readonly signingSecret: string }>,
    'slack-app.removed.v1': () => null,
  },
});

export const channelProjection = projection({
  name: 'sub:slack-requests:channel-projection:v1',
  readModel: modelOf<ChannelDocument>('slack-channel'),
  on: {
    'slack-channel.configured.v1': configured<ChannelConfig>,
    'slack-channel.removed.v1': () => null,
  },
});

export const templateProjection = projection({
  name: 'sub:slack-requests:template-projection:v1',
  readModel: modelOf<TemplateDocument>('slack-template'),
  on: {
    'slack-template.configured.v1': configured<TemplateConfig>,
    'slack-template.removed.v1': () => null,
  },
});
