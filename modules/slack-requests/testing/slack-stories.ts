// The behaviour of the module, tested on every engine.

import assert from 'node:assert/strict';
import { slackAddressing } from 'millrace/contracts';
import type { EngineUrls } from 'millrace/platform';
import {
  configureApp,
  configureChannel,
  configureTemplate,
  configureWorkspace,
  removeChannel,
} from '../config-events.ts';
import { createRequest, queueRequest, updateRequest } from '../message-request-events.ts';
import { createSecretBox } from '../secret-box.ts';
import { secretKeys, slackRig, tenant, token, type SlackRig } from './slack-rig.ts';

const data = { order: { id: 'o-1' }, by: 'Ada' };
const paid = { workspaceCode: 'acme', templateCode: 'paid', data };
const plain = { workspaceCode: 'acme', data: { text: 'hello' } };

/** One attempt, so that its outcome is visible immediately. */
async function once(rig: SlackRig): Promise<void> {
  const sealed = createSecretBox(secretKeys).seal(token, {
    tenant,
    kind: 'workspace',
    code: 'acme',
  });
  await rig.send('strict', configureApp({ name: 'Strict', attemptsMax: 1 }));
  const fields = { name: 'Acme', token: sealed, defaultChannelId: 'C0DEFAULT', appCode: 'strict' };
  await rig.send('acme', configureWorkspace(fields));
  await shown(rig, 'slack-app', 'strict', ({ attemptsMax }) => attemptsMax === 1);
  await shown(rig, 'slack-workspace', 'acme', ({ appCode }) => appCode === 'strict');
}

/** The worker reads the configuration from read models, which follow the events. */
async function shown(
  { platform }: SlackRig,
  aggregate: string,
  id: string,
  isWanted: (document: { readonly attemptsMax?: number; readonly appCode?: string }) => boolean,
): Promise<void> {
  const documents = platform.documents({ bc: 'notification-slack', aggregate });
  for (;;) {
    const found = (await documents.get(tenant, id))?.document;
    if (found !== undefined && isWanted(found)) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

export const slackStories: Readonly<Record<string, (engines: EngineUrls) => Promise<void>>> = {
  'a request is rendered, posted once, and its snapshot contains the channel': async (engines) => {
    await using rig = await slackRig({ engines });
    const odd = { order: { id: 'o<1>' }, by: 'Ada & Co' };
    const request = { ...paid, data: odd, channelCode: 'orders', recipient: 'U0BOB' };
    await rig.send('r-1', createRequest(request));
    const document = await rig.inStatus('r-1', 'sent', 'failed');
    const [message, ...more] = rig.slack.messages;
    assert.equal(more.length, 0);
    assert.equal(message?.text, 'Order o&lt;1&gt; is paid by Ada &amp; Co');
    assert.deepEqual(message?.metadata?.event_payload, { id: 'core/r-1' });
    const { status, channelId, ts, attempts, round } = document;
    assert.deepEqual(
      { status, channelId, ts, attempts, round },
      { status: 'sent', channelId: 'C0ORDERS', ts: message?.ts, attempts: 1, round: 1 },
    );
  },
  'the channel comes from the code, else the recipient, else the workspace': async (engines) => {
    await using rig = await slackRig({ engines });
    await rig.send('r-1', createRequest({ ...plain, channelCode: 'orders', recipient: 'C0OTHER' }));
    await rig.send('r-2', createRequest({ ...plain, recipient: 'C0OTHER' }));
    await rig.send('r-3', createRequest({ ...plain, threadTs: '17.1' }));
    for (const [id, channelId] of [
      ['r-1', 'C0ORDERS'],
      ['r-2', 'C0OTHER'],
      ['r-3', 'C0DEFAULT'],
    ] as const) {
      assert.equal((await rig.inStatus(id, 'sent', 'failed')).channelId, channelId);
    }
    assert.equal(
      rig.slack.messages.find(({ channel }) => channel === 'C0DEFAULT')?.thread_ts,
      '17.1',
    );
  },
  'an invalid request fails with its reason, without a call to Slack': async (engines) => {
    await using rig = await slackRig({ engines });
    await rig.send('bare', configureWorkspace({ name: 'Bare', token: sealedFor('bare') }));
    await rig.send('off', configureTemplate({ text: 'x', enabled: false }));
    await rig.send('gone', configureChannel({ channelId: 'C0GONE' }));
    await rig.send('gone', removeChannel({}));
    await rig.send(
      'copied',
      configureWorkspace({ name: 'Copied', token: sealedFor('bare'), defaultChannelId: 'C1' }),
    );
    const cases = [
      [{ ...paid, data: { by: 'Ada' } }, 'template-data-missing'],
      [{ ...plain, workspaceCode: 'nowhere' }, 'workspace-unknown'],
      [{ ...plain, workspaceCode: 'bare' }, 'channel-missing'],
      [{ ...plain, templateCode: 'off' }, 'template-disabled'],
      [{ ...plain, channelCode: 'gone' }, 'channel-unknown'],
      [{ ...plain, workspaceCode: 'copied' }, 'secret-unreadable'],
    ] as const;
    for (const [at, [request, code]] of cases.entries()) {
      await rig.send(`r-${at}`, createRequest(request));
      assert.equal((await rig.inStatus(`r-${at}`, 'sent', 'failed')).code, code);
    }
    assert.deepEqual(rig.slack.calls, []);
  },
  'after a lost response the message is found in the history': async (engines) => {
    await using rig = await slackRig({ engines });
    rig.slack.behave('chat.postMessage', 'drop-after', {
      status: 502,
      body: '<html>',
      accepts: true,
    });
    await rig.send('r-1', createRequest(plain));
    await rig.send('r-2', createRequest({ ...plain, threadTs: '17.1' }));
    await rig.send('r-3', createRequest({ ...plain, recipient: 'U0BOB' }));
    for (const id of ['r-1', 'r-2', 'r-3']) {
      assert.equal((await rig.inStatus(id, 'sent', 'failed')).status, 'sent');
    }
    assert.equal(rig.slack.messages.length, 3);
  },
  'a 5xx response with an error code of Slack does not post the message twice': async (engines) => {
    await using rig = await slackRig({ engines });
    const body = '{"ok":false,"error":"service_unavailable"}';
    rig.slack.behave('chat.postMessage', { status: 503, body, accepts: true });
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).status, 'sent');
    assert.equal(rig.slack.messages.length, 1);
  },
  'a message that Slack accepts slowly is searched for, not posted again': async (engines) => {
    await using rig = await slackRig({ engines, module: { timeoutMs: 300 } });
    rig.slack.behave('chat.postMessage', { answerAfter: new Promise(() => undefined) });
    await rig.send('r-1', createRequest({ ...plain, recipient: 'U0BOB' }));
    const { ts, channelId } = await rig.inStatus('r-1', 'sent', 'failed');
    const [message, ...more] = rig.slack.messages;
    assert.deepEqual([more.length, ts, channelId], [0, message?.ts, 'D0BOB']);
    assert.ok(rig.slack.calls.includes('conversations.history'));
  },
  'a request that never reached Slack is posted after the search': async (engines) => {
    await using rig = await slackRig({ engines });
    rig.slack.behave('chat.postMessage', 'drop-before', { error: 'internal_error' });
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).status, 'sent');
    assert.equal(rig.slack.messages.length, 1);
  },
  'without access to the history nothing is posted again and the request fails': async (
    engines,
  ) => {
    await using rig = await slackRig({ engines });
    rig.slack.behave('chat.postMessage', 'drop-after');
    rig.slack.behave('conversations.history', { error: 'missing_scope' });
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).code, 'outcome-unknown');
    // After an operator grants access, a second queueing finds the message.
    await rig.send('r-1', queueRequest({}));
    assert.equal((await rig.inStatus('r-1', 'sent')).round, 2);
    assert.equal(rig.slack.messages.length, 1);
  },
  'a rate limit releases the lock, delays the job and does not count as an attempt': async (
    engines,
  ) => {
    await using rig = await slackRig({ engines });
    await once(rig);
    rig.slack.behave('chat.postMessage', { status: 429, headers: { 'retry-after': '1' } });
    await rig.send('r-1', createRequest(plain));
    const { attempts, status } = await rig.inStatus('r-1', 'sent', 'failed');
    assert.deepEqual([status, attempts], ['sent', 1]);
    assert.equal(rig.slack.messages.length, 1);
  },
  'a request with a permanent error fails, and can be changed and sent': async (engines) => {
    await using rig = await slackRig({ engines });
    rig.slack.behave('chat.postMessage', { error: 'is_archived' });
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).code, 'is_archived');
    await rig.send('r-1', updateRequest({ recipient: 'C0OTHER' }));
    const { channelId, round, code } = await rig.inStatus('r-1', 'sent');
    assert.deepEqual([channelId, round, code], ['C0OTHER', 2, undefined]);
  },
  'the last attempt fails, or has an unknown outcome if it may have posted': async (engines) => {
    await using rig = await slackRig({ engines });
    await once(rig);
    rig.slack.behave('chat.postMessage', { error: 'service_unavailable' });
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).code, 'service_unavailable');
    rig.slack.behave('chat.postMessage', { status: 503, body: '<html>Sorry</html>' });
    await rig.send('r-2', createRequest(plain));
    const { code, reason } = await rig.inStatus('r-2', 'sent', 'failed');
    assert.deepEqual([code, reason], ['outcome-unknown', 'http-503']);
  },
  'a lost job is added again, and a stale lock expires': async (engines) => {
    await using rig = await slackRig({ engines, starts: false });
    const { platform } = rig;
    // Marked as dispatched and locked by a dead worker, but without a job.
    await rig.send('r-1', createRequest(plain));
    const dead = slackAddressing.dispatched(tenant, 'r-1');
    const keys = await rig.keys();
    await keys.putIfAbsent(dead, 'core.r-1.1.1');
    await keys.putIfAbsent(slackAddressing.sendLock(tenant, 'r-1'), 'dead', { ttlMs: 300 });
    await platform.start();
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).status, 'sent');
    assert.equal(rig.slack.messages.length, 1);
  },
  'a thread in a job changes neither where its request is posted nor where it is searched': async (
    engines,
  ) => {
    await using rig = await slackRig({ engines, starts: false });
    rig.slack.behave('chat.postMessage', 'drop-after');
    await rig.send('r-1', createRequest(plain));
    const queue = await rig.queue();
    const { queueName, jobName: name } = slackAddressing;
    for (const threadTs of ['17.1', '18.1']) {
      const job = { messageRequestId: 'r-1', tenant, threadTs };
      await queue.add(queueName, [{ id: `own-${threadTs}`, name, data: job }]);
    }
    await rig.platform.start();
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).status, 'sent');
    assert.deepEqual(
      rig.slack.messages.map((message) => message.thread_ts),
      [undefined],
    );
  },
  'a job in the old format is sent by its ids': async (engines) => {
    await using rig = await slackRig({ engines, starts: false });
    await rig.send('r-1', createRequest(plain));
    const old = { id: 'r-1', tenant, status: 'queued', data: { text: 'old words' } };
    const queue = await rig.queue();
    const job = { messageRequest: old, workspace: { token: 'xoxb-of-an-old-job' }, tenant };
    const { queueName, jobName: name } = slackAddressing;
    await queue.add(queueName, [{ id: 'old-1', name, data: job }]);
    await rig.platform.start();
    await rig.inStatus('r-1', 'sent', 'failed');
    assert.deepEqual(
      rig.slack.messages.map(({ text }) => text),
      ['hello'],
    );
    const used = rig.slack.requests.map(({ headers }) => headers.authorization);
    assert.deepEqual(new Set(used), new Set([`Bearer ${token}`]));
  },
  'workspaces, requests and locks are separate per tenant': async (engines) => {
    await using rig = await slackRig({ engines });
    const handle = (id: string, command: Parameters<SlackRig['send']>[1]) =>
      rig.platform.handle({ tenant: 'other', id, command });
    await handle('r-1', createRequest(plain));
    await rig.send('r-1', createRequest(plain));
    assert.equal((await rig.inStatus('r-1', 'sent', 'failed')).status, 'sent');
    const family = { bc: 'notification-slack', aggregate: 'message-request' };
    const other = rig.platform.documents(family);
    for (;;) {
      const found: { code?: string } | undefined = (await other.get('other', 'r-1'))?.document;
      if (found?.code === undefined) continue;
      assert.equal(found.code, 'workspace-unknown');
      break;
    }
    assert.equal(rig.slack.messages.length, 1);
  },
};

function sealedFor(code: string): string {
  return createSecretBox(secretKeys).seal(token, { tenant, kind: 'workspace', code });
}
