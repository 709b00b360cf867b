import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { destinationConformance } from '../../testing/conformance/delivery/destination.ts';
import { startHttpReceiver, type AnswerRequest } from '../../testing/servers/http-receiver.ts';
import { slackDestination, type SlackOptions } from './destination.ts';
import { classifySlackError } from './api.ts';

const token = 'xoxb-not-a-real-token';

interface Posted {
  readonly ts: string;
  readonly channel: string;
  readonly text: string;
  readonly thread_ts?: string;
  readonly blocks?: readonly object[];
  readonly metadata: {
    readonly event_type: string;
    readonly event_payload: { readonly id: string };
  };
}

/** A fake of Slack's Web API over real HTTP. */
async function startFakeSlack() {
  const posted: Posted[] = [];
  const calls: string[] = [];
  const behave: AnswerRequest = ({ path, headers, body }, response) => {
    const say = (answer: object): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    };
    const method = path.replace('/api/', '');
    calls.push(method);
    if (headers.authorization !== `Bearer ${token}`)
      return say({ ok: false, error: 'invalid_auth' });
    if (method === 'chat.postMessage') {
      const ts = `17000000${String(posted.length).padStart(2, '0')}.000100`;
      const message = { ...parsedForm(body), ts };
      posted.push(message);
      return say({ ok: true, channel: message.channel, ts, message });
    }
    const query = new URLSearchParams(body);
    const thread = query.get('ts') ?? undefined;
    const messages = posted.filter(
      ({ channel, thread_ts: parent }) => channel === query.get('channel') && parent === thread,
    );
    if (query.get('include_all_metadata') !== 'true') return say({ ok: true, messages: [] });
    return say({ ok: true, messages: messages.toReversed().slice(0, Number(query.get('limit'))) });
  };
  const receiver = await startHttpReceiver({ answer: behave });
  return Object.assign(receiver, { posted, calls, behave, apiUrl: `${receiver.url}/api` });
}

/** Form fields, with objects as JSON, as Slack expects them. */
function parsedForm(body: string): Omit<Posted, 'ts'> {
  const fields = [...new URLSearchParams(body)].map(([name, text]) => [
    name,
    name === 'blocks' || name === 'metadata' ? (JSON.parse(text) as unknown) : text,
  ]);
  return Object.fromEntries(fields) as Posted;
}

const slack = await startFakeSlack();
after(() => slack[Symbol.asyncDispose]());
const open = (options: Partial<SlackOptions> = {}) =>
  slackDestination({
    token,
    apiUrl: slack.apiUrl,
    compose: ({ payload }) => ({ channel: 'C1', text: String(payload['text']) }),
    ...options,
  });

const failing = (error: string) => async () => {
  const back = slack.answer((_request, response) =>
    response.writeHead(200).end(JSON.stringify({ ok: false, error })),
  );
  return async () => back();
};

const destination = await open();
after(() => destination[Symbol.asyncDispose]());
for (const { name, skip, run } of destinationConformance({
  destination,
  dedupes: true,
  received: async () =>
    slack.posted.map(({ text, metadata }) => ({ text, idempotencyKey: metadata.event_payload.id })),
  secrets: [token],
  away: () => slack.away(),
  busy: async () => {
    const back = slack.answer((_request, response) =>
      response.writeHead(429, { 'retry-after': '3' }).end('{"ok":false,"error":"ratelimited"}'),
    );
    return async () => back();
  },
  rejects: failing('channel_not_found'),
  silent: async () => {
    const back = slack.answer(() => undefined);
    return async () => back();
  },
})) {
  test(`Slack: ${name}`, { skip: skip ?? false }, run);
}

let count = 0;
async function deliver(
  options: Partial<SlackOptions> = {},
  fields: Partial<DeliveryMessage> = {},
): Promise<DeliveryOutcome> {
  await using send = await open(options);
  count += 1;
  const delivery = createDelivery({ destinations: { slack: { send, timeoutMs: 60_000 } } });
  return await delivery.deliver({
    id: 'o-1',
    integrationType: 'slack:payments',
    eventType: 'payment.completed.v1',
    payload: { text: 'hello' },
    sourceStreamId: 'paymenthub.payment.v1-core-1',
    sourceEventId: `event-${count}`,
    ...fields,
  });
}

test('sends blocks and the thread, and returns the timestamp as receipt', async () => {
  const blocks = [{ type: 'divider' }];
  const compose = () => ({ channel: 'C2', text: 'x', blocks, threadTs: '1.2' });
  const outcome = await deliver({ compose });
  const last = slack.posted.at(-1);
  assert.deepEqual(last?.blocks, blocks);
  assert.equal(last?.thread_ts, '1.2');
  assert.ok(outcome.kind === 'sent' && outcome.receipt === last?.ts);
});

test('does not post again a message that Slack stored without a response', async () => {
  for (const threadTs of [undefined, '5.6']) {
    const compose = () => ({
      channel: 'C3',
      text: 'once',
      ...(threadTs === undefined ? {} : { threadTs }),
    });
    const sourceEventId = `lost-${threadTs}`;
    // Posts the message, then closes the connection without a response.
    const back = slack.answer((request, response) => {
      slack.behave(
        request,
        Object.assign(Object.create(response) as typeof response, {
          writeHead: () => ({ end: () => response.destroy() }),
        }),
      );
    });
    const lost = await deliver({ compose }, { sourceEventId });
    back();
    assert.ok(lost.kind === 'retry' && lost.ambiguous === true, JSON.stringify(lost));
    const again = await deliver({ compose }, { sourceEventId, attempts: 1 });
    const posted = slack.posted.filter(
      ({ metadata }) => metadata.event_payload.id === sourceEventId,
    );
    assert.equal(posted.length, 1);
    assert.ok(again.kind === 'sent' && again.receipt === posted[0]?.ts);
  }
});

test('searches the history after a process died, but not at the first attempt', async () => {
  slack.calls.length = 0;
  await deliver();
  assert.deepEqual(slack.calls, ['chat.postMessage']);
  slack.calls.length = 0;
  await deliver({}, { attempts: 0, starts: 2 });
  assert.deepEqual(slack.calls, ['conversations.history', 'chat.postMessage']);
});

test('posts nothing while the history is unavailable, but posts if the token may not read it', async () => {
  const answerHistory = (error: string) =>
    slack.answer((request, response) => {
      if (request.path.endsWith('history')) {
        response.writeHead(200).end(JSON.stringify({ ok: false, error }));
      } else slack.behave(request, response);
    });
  let back = answerHistory('internal_error');
  const before = slack.posted.length;
  assert.equal((await deliver({}, { attempts: 1 })).kind, 'retry');
  assert.equal(slack.posted.length, before);
  back();
  back = answerHistory('missing_scope');
  assert.equal((await deliver({}, { attempts: 1 })).kind, 'sent');
  assert.equal(slack.posted.length, before + 1);
  back();
});

test('a rate limit pauses the whole destination, and nothing was posted', async () => {
  const back = slack.answer((_request, response) =>
    response.writeHead(429, { 'retry-after': '30' }).end(),
  );
  const outcome = await deliver();
  back();
  assert.deepEqual(outcome, {
    kind: 'retry',
    error: 'ratelimited',
    afterMs: 30_000,
    throttled: true,
  });
});

test('classifies error codes as permanent, transient or ambiguous', async () => {
  const cases = [
    ['channel_not_found', 'permanent', { kind: 'dead', error: 'channel_not_found' }],
    ['invalid_blocks', 'permanent', { kind: 'dead', error: 'invalid_blocks' }],
    ['token_revoked', 'transient', { kind: 'retry', error: 'token_revoked' }],
    ['service_unavailable', 'transient', { kind: 'retry', error: 'service_unavailable' }],
    ['never_heard_of', 'transient', { kind: 'retry', error: 'never_heard_of' }],
    ['internal_error', 'ambiguous', { kind: 'retry', error: 'internal_error', ambiguous: true }],
  ] as const;
  for (const [code, kind, outcome] of cases) {
    assert.equal(classifySlackError(code), kind);
    const back = await failing(code)();
    assert.deepEqual(await deliver(), outcome);
    await back();
  }
});

test('a response that is not from Slack, and any 5xx, is ambiguous', async () => {
  for (const [status, body] of [
    [502, '<html>Bad gateway</html>'],
    [503, '{"ok":false,"error":"service_unavailable"}'],
    [200, ''],
    [200, '{"ok":tr'],
    [200, 'null'],
    [200, '[]'],
  ] as const) {
    const back = slack.answer((_request, response) => response.writeHead(status).end(body));
    const outcome = await deliver();
    back();
    assert.ok(outcome.kind === 'retry' && outcome.ambiguous === true, body);
  }
});

test('uses the token of the message’s workspace, and posts nothing for undefined', async () => {
  assert.equal((await deliver({ token: async () => token })).kind, 'sent');
  assert.equal((await deliver({ token: 'xoxb-wrong' })).kind, 'retry');
  const before = slack.posted.length;
  const outcome = await deliver({ compose: () => undefined });
  assert.ok(outcome.kind === 'sent' && outcome.skipped !== undefined);
  assert.equal(slack.posted.length, before);
});

test('the client neither retries nor follows redirects', async () => {
  let requests = 0;
  const counted = (status: number, headers: Record<string, string>) =>
    slack.answer((_request, response) => {
      requests += 1;
      response.writeHead(status, headers).end();
    });
  for (const [status, headers] of [
    [503, {}],
    [429, {}],
    [307, { location: `${slack.apiUrl}/chat.postMessage` }],
  ] as const) {
    requests = 0;
    const back = counted(status, headers);
    assert.equal((await deliver()).kind, 'retry');
    back();
    assert.equal(requests, 1, String(status));
  }
});
