// Events and commands of the configuration: workspaces with their tokens, apps, channels and templates, each with a code.
// Secrets are encrypted in commands, events and documents.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { blocks, channelId, code, name, nothing, sealed, slackRequestLimits } from './fields.ts';

const enabled = z.boolean().default(true);

const workspaceConfig = z.object({
  name,
  /** The encrypted bot token. */
  token: sealed,
  /** Used if a request names neither channel nor recipient. */
  defaultChannelId: channelId.optional(),
  appCode: code.optional(),
  enabled,
});
const appConfig = z.object({
  name,
  signingSecret: sealed.optional(),
  /** Maximum number of attempts per request. */
  attemptsMax: z.int().min(1).max(50).optional(),
  /** Minimum interval between two messages to a channel. */
  channelIntervalMs: z.int().min(0).max(60_000).optional(),
  enabled,
});
const channelConfig = z.object({ name: name.optional(), channelId, enabled });
const templateConfig = z.object({
  /** Shown in notifications, also with blocks. `{{order.id}}` inserts data. */
  text: z.string().min(1).max(slackRequestLimits.textCharsMax),
  blocks: blocks.optional(),
  enabled,
});
const token = z.object({ token: sealed });
const signingSecret = z.object({ signingSecret: sealed });

export type WorkspaceConfig = z.output<typeof workspaceConfig>;
export type AppConfig = z.output<typeof appConfig>;
export type ChannelConfig = z.output<typeof channelConfig>;
export type TemplateConfig = z.output<typeof templateConfig>;

export const workspaceConfigured = defineEvent('slack-workspace.configured.v1', workspaceConfig);
/** The unchanged token, encrypted with another key. */
export const workspaceResealed = defineEvent('slack-workspace.resealed.v1', token);
export const workspaceRemoved = defineEvent('slack-workspace.removed.v1', nothing);
export const configureWorkspace = defineCommand('slack-workspace.configure', workspaceConfig);
export const resealWorkspace = defineCommand('slack-workspace.reseal', token);
export const removeWorkspace = defineCommand('slack-workspace.remove', nothing);

export const appConfigured = defineEvent('slack-app.configured.v1', appConfig);
export const appResealed = defineEvent('slack-app.resealed.v1', signingSecret);
export const appRemoved = defineEvent('slack-app.removed.v1', nothing);
export const configureApp = defineCommand('slack-app.configure', appConfig);
export const resealApp = defineCommand('slack-app.reseal', signingSecret);
export const removeApp = defineCommand('slack-app.remove', nothing);

export const channelConfigured = defineEvent('slack-channel.configured.v1', channelConfig);
export const channelRemoved = defineEvent('slack-channel.removed.v1', nothing);
export const configureChannel = defineCommand('slack-channel.configure', channelConfig);
export const removeChannel = defineCommand('slack-channel.remove', nothing);

export const templateConfigured = defineEvent('slack-template.configured.v1', templateConfig);
export const templateRemoved = defineEvent('slack-template.removed.v1', nothing);
export const configureTemplate = defineCommand('slack-template.configure', templateConfig);
export const removeTemplate = defineCommand('slack-template.remove', nothing);
