// `app:{core}:notification-slack:slack-workspace:v1:<code>` and its like: what the worker finds by codes.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { AppConfig, ChannelConfig, TemplateConfig, WorkspaceConfig } from './config-events.ts';
import { boundedContext } from './fields.ts';

interface Stamped {
  readonly code: string;
  readonly updatedAt: string;
}

/** With its token, sealed. */
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
