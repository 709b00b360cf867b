// Kills the process of Slack requests at every step: each request is posted exactly once and marked as sent.

import assert from 'node:assert/strict';
import {
  configureWorkspace,
  createRequest,
  createSecretBox,
  slackRequests,
  type RequestDocument,
  type SlackRequestsOptions,
} from '../../modules/slack-requests/index.ts';
import { createPlatform, type EngineUrls } from '../../src/platform/index.ts';
import { startChild, startFakeSlack, type Child } from '../../src/testing/index.ts';
import { soakMinutes } from '../store/rig.ts';
import type { SlackWorkerInput } from './slack-worker-main.ts';

const tenant = 'core';
const token = 'xoxb-not-a-real-token';
const secretKeys = [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }];
/** All calls for one request, from its event to its outcome. */
const calls = [
  'load notification.slack.request',
  'put dispatched',
  'queue.add',
  'job',
  'put send-lock',
  'message-request.begin',
  'get send-lock',
  'message-request.record-sent',
  'remove send-lock',
];
/** Slack has posted the message, but the process is killed before the response. */
const lostResponse = 'lost response';
const allMoments = [...calls.flatMap((call) => [`before ${call}`, `after ${call}`]), lostResponse];
/**
 * A kill after a call and a kill before the next call leave the same data. The embedded engines and Redis
 * take turns, so `npm test` kills once in each state of the data.
 */
export const momentsEmbedded = [
  'before put dispatched',
  'after queue.add',
  'after put send-lock',
  'before message-request.record-sent',
  'after remove send-lock',
  lostResponse,
];
export const momentsOnRedis = [
  'after put dispatched',
  'before put send-lock',
  'after message-request.begin',
  'after message-request.record-sent',
  lostResponse,
];
const script = new URL('./slack-worker-main.ts', import.meta.url);

/** Kills at the given moments; a soak kills at all of them. */
export async function slackKilledAt(
  someMoments: readonly string[],
  engines: EngineUrls,
): Promise<void> {
  const moments = soakMinutes > 0 ? allMoments : someMoments;
  await using slack = await startFakeSlack({ tokens: [token] });
  const options: SlackRequestsOptions = {
    secretKeys,
    apiUrl: slack.apiUrl,
    timeoutMs: 1_000,
    lockMs: 2_500,
    settleMs: 50,
    retryMs: 50,
    channelIntervalMs: 0,
    workspaceIntervalMs: 0,
    sweepIntervalMs: 100,
    sweepGraceMs: 300,
    jobLeaseMs: 400,
  };
  // This platform only sends commands and reads; the killed processes do the rest.
  await using platform = await createPlatform({
    engines,
    modules: [slackRequests(options)],
    roles: ['api'],
  });
  const owner = { tenant, kind: 'workspace', code: 'acme' };
  const sealed = createSecretBox(secretKeys).seal(token, owner);
  const command = configureWorkspace({ name: 'Acme', token: sealed, defaultChannelId: 'C1' });
  await platform.handle({ tenant, id: 'acme', command });
  const ids: string[] = [];
  const ask = async (id: string): Promise<void> => {
    ids.push(id);
    const data = { text: `message ${id}` };
    await platform.handle({ tenant, id, command: createRequest({ workspaceCode: 'acme', data }) });
  };
  const start = (killPoint?: SlackWorkerInput['killPoint']): Child => {
    const input: SlackWorkerInput = { engines, options, killPoint };
    return startChild(script, { input });
  };

  for (const [index, at] of moments.entries()) {
    if (at === lostResponse) continue;
    const id = `r-${index}`;
    await ask(id);
    await using child = start({ id, at });
    assert.equal(await child.ended, 'SIGKILL', `${at}: ${child.errors()}`);
  }
  if (moments.includes(lostResponse)) await loseResponse();

  await using last = start();
  await Promise.race([allSent(), last.ended]);
  for (const id of ids) {
    const posted = slack.messages.filter(({ text }) => text === `message ${id}`);
    assert.equal(posted.length, 1, `${id} was posted ${posted.length} times`);
    const { status, ts } = await documentOf(id);
    assert.deepEqual({ status, ts }, { status: 'sent', ts: posted[0]?.ts }, id);
  }

  async function loseResponse(): Promise<void> {
    await ask('r-lost');
    slack.behave('chat.postMessage', { answerAfter: new Promise(() => undefined) });
    const lost = start();
    while (!slack.messages.some(({ text }) => text === 'message r-lost')) {
      // A recovered request may have used up the delayed response, so it is set again.
      if (slack.messages.length > 0)
        slack.behave('chat.postMessage', { answerAfter: new Promise(() => undefined) });
      await pause();
    }
    await lost.kill('SIGKILL');
    slack.behave('chat.postMessage', 'ok');
  }

  async function documentOf(id: string): Promise<Partial<RequestDocument>> {
    const documents = platform.documents({
      bc: 'notification-slack',
      aggregate: 'message-request',
    });
    return (await documents.get(tenant, id))?.document ?? {};
  }

  async function allSent(): Promise<void> {
    for (const id of ids) while ((await documentOf(id)).status !== 'sent') await pause();
  }
}

/** Polls, because other processes send no signal. */
function pause(ms = 20): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
