import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { Redis } from 'ioredis';
import { slackAddressing } from '../../src/contracts/index.ts';
import type { Observer } from '../../src/foundation/index.ts';
import { startRedis, type RedisServer } from '../../src/testing/index.ts';
import { configureWorkspace } from '../../modules/slack-requests/config-events.ts';
import { createRequest } from '../../modules/slack-requests/message-request-events.ts';
import { createSecretBox } from '../../modules/slack-requests/secret-box.ts';
import {
  secretKeys,
  slackRig,
  tenant,
  token,
} from '../../modules/slack-requests/testing/slack-rig.ts';
import { slackStories } from '../../modules/slack-requests/testing/slack-stories.ts';

const plain = { workspaceCode: 'acme', data: { text: 'hello' } };

describe('Redis and BullMQ', () => {
  let redis: RedisServer;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis[Symbol.asyncDispose]());

  for (const [name, run] of Object.entries(slackStories)) {
    it(name, async () => {
      const client = new Redis(redis.url);
      await client.flushall();
      client.disconnect();
      await run({ store: 'memory:', keys: redis.url, queue: redis.url });
    });
  }
});

/** All keys of Redis with their values as text. */
async function dump(client: Redis): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const key of await client.keys('*')) {
    const type = await client.type(key);
    const value: unknown =
      type === 'hash'
        ? await client.hgetall(key)
        : type === 'set'
          ? await client.smembers(key)
          : type === 'zset'
            ? await client.zrange(key, 0, -1, 'WITHSCORES')
            : type === 'list'
              ? await client.lrange(key, 0, -1)
              : type === 'stream'
                ? await client.xrange(key, '-', '+')
                : await client.get(key);
    found.set(key, JSON.stringify(value));
  }
  return found;
}

test('the checklist of the Slack document, line by line', async (t) => {
  await using redis = await startRedis();
  const client = new Redis(redis.url);
  try {
    const logLines: string[] = [];
    const log = (fields: object, message: string): void =>
      void logLines.push(
        `${message} ${JSON.stringify(fields, (_key, value: unknown) => (value instanceof Error ? String(value.stack) : value))}`,
      );
    const spans: string[] = [];
    const observer: Observer = {
      log: { debug: log, info: log, warn: log, error: log },
      span: (name, attributes) => {
        spans.push(`${name} ${JSON.stringify(attributes)}`);
        return {
          context: undefined,
          set: (more) => void spans.push(JSON.stringify(more)),
          fail: (error) => void spans.push(String(error)),
          end: () => undefined,
        };
      },
      count: (name, attributes) => void spans.push(`${name} ${JSON.stringify(attributes)}`),
    };
    await using rig = await slackRig({
      engines: { store: 'memory:', keys: redis.url, queue: redis.url },
      observer,
    });
    // The response is delayed, so the test can look at Redis while the message is sent.
    const release = Promise.withResolvers<void>();
    rig.slack.behave('chat.postMessage', { answerAfter: release.promise });
    await rig.send('r-1', createRequest({ ...plain, channelCode: 'orders', threadTs: '17.1' }));
    while (rig.slack.messages.length === 0) await new Promise(setImmediate);
    const during = await dump(client);

    await t.test('jobs carry only { tenant, messageRequestId, threadTs? }', () => {
      const job = JSON.parse(during.get('bull:MessageRequestQueue:core.r-1.1.1') ?? '{}') as Record<
        string,
        string
      >;
      assert.equal(job['name'], 'send-message-request');
      assert.deepEqual(JSON.parse(job['data'] ?? ''), {
        messageRequestId: 'r-1',
        tenant,
        threadTs: '17.1',
      });
      const { attempts, removeOnComplete, removeOnFail } = JSON.parse(job['opts'] ?? '') as Record<
        string,
        unknown
      >;
      assert.deepEqual([attempts, removeOnComplete, removeOnFail], [1, 100, 50]);
    });
    await t.test('the projector sets :dispatched to the id of the job', () => {
      const key = 'notification.slack:v1:{core}:message-request:r-1:dispatched';
      assert.equal(during.get(key), '"core.r-1.1.1"');
    });
    await t.test('the worker sets :send-lock with a time to live before it sends', async () => {
      const key = 'notification.slack:v1:{core}:message-request:r-1:send-lock';
      assert.match(during.get(key) ?? '', /^"[0-9a-f-]{36}"$/);
      const ttl = await client.pttl(key);
      assert.ok(ttl > 0 && ttl <= 15_000, String(ttl));
    });
    await t.test('the request is in the index of its status while it is queued', () => {
      assert.equal(
        during.get('notification.slack:v1:{core}:idx:message-request:by-status:queued'),
        '["r-1"]',
      );
    });

    release.resolve();
    const { ts } = await rig.inStatus('r-1', 'sent', 'failed');
    const contents = await dump(client);

    await t.test('the worker finds the channel by its code, not in the job', () => {
      assert.deepEqual(
        rig.slack.messages.map(({ channel }) => channel),
        ['C0ORDERS'],
      );
    });
    await t.test('sent and failed events are appended to the stream of the request', async () => {
      const stream = 'notification.slack.request-core-r-1';
      assert.equal(slackAddressing.stream(tenant, 'r-1'), stream);
      const events = await rig.platform.engines.store.readStream(stream).toArray();
      assert.deepEqual(
        events.map(({ type }) => type),
        [
          'message-request.created.v1',
          'message-request.queued.v1',
          'message-request.updated.v1',
          'message-request.sent.v1',
        ],
      );
      await rig.send('r-2', createRequest({ ...plain, templateCode: 'paid' }));
      await rig.inStatus('r-2', 'failed');
      const failed = await rig.platform.engines.store
        .readStream('notification.slack.request-core-r-2')
        .toArray();
      assert.equal(failed.at(-1)?.type, 'message-request.failed.v1');
    });
    await t.test(
      'the snapshot and its indexes have the fields and keys of the document',
      async () => {
        const fields = JSON.parse(
          contents.get('notification.slack:v1:{core}:message-request:r-1') ?? '{}',
        ) as Record<string, string>;
        const { createdAt = '', updatedAt = '', correlationId = '', ...rest } = fields;
        assert.ok(Date.parse(createdAt) <= Date.parse(updatedAt) && correlationId !== '');
        assert.deepEqual(rest, {
          id: 'r-1',
          tenant: 'core',
          workspaceCode: 'acme',
          channelCode: 'orders',
          threadTs: '17.1',
          data: '{"text":"hello"}',
          status: 'sent',
          version: '4',
          lastStreamRevision: '3',
          round: '1',
          attempts: '1',
          channelId: 'C0ORDERS',
          ts,
        });
        const updated = 'notification.slack:v1:{core}:idx:message-request:updated';
        assert.equal(Number(await client.zscore(updated, 'r-1')), Date.parse(updatedAt));
        const space = 'notification.slack:v1:{core}:idx:message-request:by-status';
        assert.equal(await client.sismember(`${space}:sent`, 'r-1'), 1);
        assert.equal(await client.sismember(`${space}:queued`, 'r-1'), 0);
      },
    );
    await t.test('no secret is in jobs, keys, events, logs or traces', async () => {
      // A wrong token, and a response that contains the token, as the error page of a gateway might.
      const wrong = 'xoxb-wrong-4711-token';
      const sealed = createSecretBox(secretKeys).seal(wrong, {
        tenant,
        kind: 'workspace',
        code: 'bad',
      });
      await rig.send(
        'bad',
        configureWorkspace({ name: 'Bad', token: sealed, defaultChannelId: 'C1' }),
      );
      await rig.send('r-3', createRequest({ ...plain, workspaceCode: 'bad' }));
      rig.slack.behave('chat.postMessage', { status: 502, body: `<html>${token}</html>` });
      await rig.send('r-4', createRequest(plain));
      while (logLines.filter((line) => line.startsWith('request deferred')).length < 2) {
        await new Promise(setImmediate);
      }
      const events = await rig.platform.engines.store.readAll().toArray();
      const outputs = {
        redis: JSON.stringify([...(await dump(client))]),
        events: JSON.stringify(events.map(({ payload, headers }) => [payload, headers])),
        logs: logLines.join('\n'),
        traces: spans.join('\n'),
      };
      assert.ok(outputs.logs.includes('r-4') && outputs.redis.includes('r-4'));
      assert.ok(outputs.traces.includes('send slack message'));
      for (const [output, text] of Object.entries(outputs)) {
        for (const secret of [token, wrong, secretKeys[0]?.key ?? '-']) {
          assert.ok(!text.includes(secret), `a secret is in ${output}`);
        }
      }
    });
    await t.test('every log line about a request carries its tags', () => {
      const lines = logLines.filter((line) => line.includes('"messageRequestId":'));
      for (const message of ['request queued', 'Slack called', 'request sent', 'request failed']) {
        assert.ok(
          lines.some((line) => line.startsWith(message)),
          message,
        );
      }
      for (const line of lines) {
        for (const tag of [
          'tenant',
          'messageRequestId',
          'workspaceCode',
          'jobId',
          'correlationId',
        ]) {
          assert.ok(line.includes(`"${tag}":`), `${tag}: ${line}`);
        }
      }
    });
  } finally {
    client.disconnect();
  }
});

test('documents and jobs are restored from the store after Redis lost everything', async () => {
  await using redis = await startRedis();
  const client = new Redis(redis.url);
  try {
    await using rig = await slackRig({
      engines: { store: 'memory:', keys: redis.url, queue: redis.url },
      module: { concurrency: 2 },
    });
    await rig.send('r-0', createRequest(plain));
    await rig.inStatus('r-0', 'sent');
    // Two requests are being sent, the others are queued.
    const release = Promise.withResolvers<void>();
    const delayed = { answerAfter: release.promise };
    rig.slack.behave('chat.postMessage', delayed, delayed);
    for (let at = 1; at <= 6; at += 1) await rig.send(`r-${at}`, createRequest(plain));
    while (rig.slack.messages.length < 3) await new Promise(setImmediate);
    await client.flushall();
    release.resolve();
    for (let at = 0; at <= 6; at += 1) {
      assert.equal((await rig.inStatus(`r-${at}`, 'sent', 'failed')).status, 'sent');
    }
    const ids = rig.slack.messages.map(({ metadata }) => metadata?.event_payload['id']);
    assert.deepEqual(
      ids.map(String).toSorted(),
      Array.from({ length: 7 }, (_, at) => `core/r-${at}`),
    );
    const space = 'notification.slack:v1:{core}:idx:message-request:by-status';
    assert.equal(await client.scard(`${space}:sent`), 7);
    assert.equal(await client.scard(`${space}:queued`), 0);
  } finally {
    client.disconnect();
  }
});
