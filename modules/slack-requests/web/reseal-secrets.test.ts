import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workspaceProjection, type WorkspaceDocument } from '../config.ts';
import { createRequest } from '../message-request-events.ts';
import { createSecretBox } from '../secret-box.ts';
import { secretKeys, slackRig, tenant } from '../testing/slack-rig.ts';
import { resealSecrets } from './slack-requests-web.ts';

test('re-encrypted secrets are readable without the old key', async () => {
  const young = { id: 'k2', key: Buffer.alloc(32, 9).toString('base64') };
  const both = createSecretBox([young, ...secretKeys]);
  await using rig = await slackRig({ module: { secretKeys: [young] } });
  const { platform } = rig;
  const caughtUp = async (): Promise<void> =>
    platform.waitFor(workspaceProjection, await platform.engines.store.head());
  await caughtUp();
  await rig.send('r-1', createRequest({ workspaceCode: 'acme', data: { text: 'hi' } }));
  assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).code, 'secret-unreadable');
  assert.equal(await resealSecrets(platform, both, tenant), 1);
  await caughtUp();
  const documents = platform.documents({ bc: 'notification-slack', aggregate: 'slack-workspace' });
  const found = (await documents.get(tenant, 'acme'))?.document as WorkspaceDocument | undefined;
  assert.match(found?.token ?? '', /^sealed\.v1\.k2\./);
  assert.equal(await resealSecrets(platform, both, tenant), 0);
  await rig.send('r-2', createRequest({ workspaceCode: 'acme', data: { text: 'hi' } }));
  assert.equal((await rig.inStatus('r-2', 'sent', 'failed')).status, 'sent');
});
