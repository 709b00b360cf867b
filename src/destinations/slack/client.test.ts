import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startFakeSlack } from '../../testing/servers/fake-slack.ts';
import { createSlackClient, slackClientLimits } from './client.ts';

const token = 'xoxb-not-a-real-token';
const call = { token, signal: new AbortController().signal };
const sinceMs = Date.now();

test('finds a posted message by our id in a channel, in a thread and in a direct conversation', async () => {
  await using slack = await startFakeSlack({ tokens: [token] });
  await using client = await createSlackClient({ apiUrl: slack.apiUrl });
  for (const target of [{ channel: 'C1' }, { channel: 'C1', threadTs: '1.2' }, { channel: 'U1' }]) {
    const id = JSON.stringify(target);
    assert.deepEqual(await client.find({ ...target, id, sinceMs }, call), { kind: 'absent' });
    const posted = await client.post({ ...target, text: 'hi', id }, call);
    assert.ok(posted.kind === 'sent', JSON.stringify(posted));
    const found = await client.find({ ...target, id, sinceMs }, call);
    assert.deepEqual(found, { kind: 'found', ts: posted.ts, channel: posted.channel });
  }
});

test('the client does not resend a message that was accepted before the connection broke', async () => {
  await using slack = await startFakeSlack({ tokens: [token] });
  await using client = await createSlackClient({ apiUrl: slack.apiUrl });
  slack.behave('chat.postMessage', 'ok', 'drop-after');
  await client.post({ channel: 'C1', text: 'one', id: '1' }, call);
  // On a reused connection, the client could resend a request without a response.
  const lost = await client.post({ channel: 'C1', text: 'two', id: '2' }, call);
  assert.ok(lost.kind === 'retry' && lost.ambiguous === true, JSON.stringify(lost));
  assert.deepEqual(
    slack.messages.map(({ text }) => text),
    ['one', 'two'],
  );
});

test('searches the history page by page, back to the earliest possible time of the post', async () => {
  await using slack = await startFakeSlack({ startMs: sinceMs });
  await using client = await createSlackClient({ apiUrl: slack.apiUrl });
  await client.post({ channel: 'C1', text: 'x', id: 'first' }, call);
  const others = slackClientLimits.pageSize + 10;
  for (let at = 0; at < others; at += 1) {
    await client.post({ channel: 'C1', text: 'x', id: `other-${at}` }, call);
  }
  const before = slack.calls.length;
  assert.equal((await client.find({ channel: 'C1', id: 'first', sinceMs }, call)).kind, 'found');
  assert.deepEqual(slack.calls.slice(before), ['conversations.history', 'conversations.history']);
  const later = sinceMs + slackClientLimits.clockSkewMs + 3_600_000;
  const found = await client.find({ channel: 'C1', id: 'first', sinceMs: later }, call);
  assert.equal(found.kind, 'absent');
});

test('distinguishes an unreadable history from an absent message and from an outage', async () => {
  await using slack = await startFakeSlack();
  await using client = await createSlackClient({ apiUrl: slack.apiUrl });
  slack.behave('conversations.history', { error: 'missing_scope' }, { error: 'internal_error' });
  const lookup = { channel: 'C1', id: '1', sinceMs };
  assert.deepEqual(await client.find(lookup, call), { kind: 'unknowable', error: 'missing_scope' });
  assert.deepEqual(await client.find(lookup, call), { kind: 'retry', error: 'internal_error' });
});

test('a call that times out is ambiguous', async () => {
  await using slack = await startFakeSlack();
  await using client = await createSlackClient({ apiUrl: slack.apiUrl, timeoutMs: 300 });
  slack.behave('chat.postMessage', { answerAfter: new Promise(() => undefined) });
  const posted = await client.post({ channel: 'C1', text: 'x', id: '1' }, call);
  assert.ok(posted.kind === 'retry' && posted.ambiguous === true, JSON.stringify(posted));
});

test('reports whether a token is valid', async () => {
  await using slack = await startFakeSlack({ tokens: [token] });
  await using client = await createSlackClient({ apiUrl: slack.apiUrl });
  assert.deepEqual(await client.test(call), { kind: 'ok', team: 'Fake' });
  const wrong = await client.test({ ...call, token: 'xoxb-wrong' });
  assert.ok(wrong.kind === 'retry' && wrong.error === 'invalid_auth');
});
