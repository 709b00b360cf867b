import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from 'millrace/foundation';
import { given } from 'millrace/testing';
import {
  appConfigured,
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
  workspaceConfigured,
  workspaceRemoved,
  workspaceResealed,
} from './config-events.ts';
import { app, channel, template, workspace } from './config.ts';
import { createSecretBox } from './secret-box.ts';
import { secretKeys } from './testing/slack-rig.ts';

const box = createSecretBox(secretKeys);
const sealed = box.seal('xoxb-1', { tenant: 'core', kind: 'workspace', code: 'acme' });
const acme = { name: 'Acme', token: sealed, enabled: true };

test('an unchanged configuration of a workspace causes no event', () => {
  given(workspace, [])
    .when(configureWorkspace(acme))
    .then([workspaceConfigured(acme)]);
  given(workspace, [workspaceConfigured(acme)])
    .when(configureWorkspace(acme))
    .then([]);
  given(workspace, [workspaceConfigured(acme)])
    .when(configureWorkspace({ ...acme, enabled: false }))
    .then([workspaceConfigured({ ...acme, enabled: false })]);
});

test('a command rejects a secret that is not encrypted', () => {
  assert.throws(
    () => configureWorkspace({ name: 'Acme', token: 'xoxb-plain', enabled: true }),
    (error) => hasCode(error, 'PAYLOAD_INVALID') && !error.message.includes('xoxb-plain'),
  );
});

test('only an existing workspace is encrypted again or removed', () => {
  given(workspace, [workspaceConfigured(acme)])
    .when(resealWorkspace({ token: sealed }))
    .then([workspaceResealed({ token: sealed })]);
  given(workspace, [])
    .when(resealWorkspace({ token: sealed }))
    .thenRejected('slack-workspace-unknown');
  given(workspace, [workspaceConfigured(acme)])
    .when(removeWorkspace({}))
    .then([workspaceRemoved({})]);
  given(workspace, [workspaceConfigured(acme), workspaceRemoved({})])
    .when(removeWorkspace({}))
    .thenRejected('slack-workspace-unknown');
});

test('apps and channels follow the same rules', () => {
  const orders = { channelId: 'C0ORDERS', enabled: true };
  given(channel, [])
    .when(configureChannel(orders))
    .then([channelConfigured(orders)]);
  given(channel, [channelConfigured(orders)])
    .when(configureChannel(orders))
    .then([]);
  given(channel, [channelConfigured(orders)])
    .when(removeChannel({}))
    .then([channelRemoved({})]);
  given(channel, []).when(removeChannel({})).thenRejected('slack-channel-unknown');
  const bot = { name: 'Bot', attemptsMax: 3, enabled: true };
  given(app, [])
    .when(configureApp(bot))
    .then([appConfigured(bot)]);
  given(app, [])
    .when(resealApp({ signingSecret: sealed }))
    .thenRejected('slack-app-unknown');
  given(app, []).when(removeApp({})).thenRejected('slack-app-unknown');
});

test('a template with an invalid placeholder is rejected', () => {
  const good = { text: 'Hi {{ user.name }}', enabled: true };
  given(template, [])
    .when(configureTemplate(good))
    .then([templateConfigured(good)]);
  for (const text of ['{{#each}}', '{{a b}}', 'open {{', '{{a..b}}']) {
    given(template, [])
      .when(configureTemplate({ text, enabled: true }))
      .thenRejected('slack-template-invalid');
  }
  given(template, []).when(removeTemplate({})).thenRejected('slack-template-unknown');
});
