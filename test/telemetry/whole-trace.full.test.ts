// One flow as an operator sees it: one trace through every hop, metrics for each hop, and a log of
// the failures.

import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { startOtlpTracing } from '../../src/engines/otel/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { createEnvelope, defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { hasCode } from '../../src/foundation/index.ts';
import { createPlatform, defineModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { reactor } from '../../src/reactors/index.ts';
import { subscription } from '../../src/subscriptions/index.ts';
import { createTelemetry, platformCollectors } from '../../src/telemetry/index.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { until } from '../store/rig.ts';
import { outboxOf } from '../scenarios/outbox-of.ts';
import { startOtlpCollector, type CollectedSpan } from './otlp-collector.ts';

const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
const open = defineCommand('account.open', z.object({ owner: z.string() }));
const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [opened],
  commands: [open],
  initial: {},
  evolve: { 'account.opened.v1': () => ({}) },
  decide: { 'account.open': ({ owner }) => opened({ owner }) },
});
const sent = defineEvent('letter.sent.v1', z.object({}));
const send = defineCommand('letter.send', z.object({}));
const letter = defineAggregate({
  bc: 'banking',
  name: 'letter',
  version: 1,
  events: [sent],
  commands: [send],
  initial: {},
  evolve: { 'letter.sent.v1': () => ({}) },
  decide: { 'letter.send': () => sent({}) },
});
const greetings = reactor({
  name: 'sub:banking:greetings:v1',
  events: [opened],
  from: 'start',
  onRejected: 'ignore',
  on: { 'account.opened.v1': ({ aggregate }) => ({ id: aggregate.id, command: send({}) }) },
});
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

function silentStream(): Writable & { readonly lines: string[] } {
  const lines: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      lines.push(chunk);
      done();
    },
  });
  return Object.assign(stream, { lines });
}

function child(spans: readonly CollectedSpan[], of: CollectedSpan, name: string): CollectedSpan {
  const found = spans.filter((span) => span.parentSpanId === of.spanId && span.name === name);
  const names = spans.map((span) => span.name).join(', ');
  assert.equal(found.length, 1, `${found.length} × '${name}' below '${of.name}' among ${names}`);
  return found[0] as CollectedSpan;
}

test('one trace covers the flow from the command to the webhook, with the messaging conventions', async () => {
  await using collector = await startOtlpCollector();
  await using receiver = await startHttpReceiver();
  const stream = silentStream();
  await using webhook = webhookDestination({
    endpoint: { id: 'partner', url: receiver.url, secrets: [secret] },
    allowAddresses: ['127.0.0.1/32'],
    allowHttp: true,
  });
  const caller = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
  {
    await using telemetry = await createTelemetry({
      stream,
      version: '1.2.3',
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_SERVICE_NAME: 'bank',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%20lab,service.name=lost',
        MILLRACE_LOG_LEVEL: 'debug',
      },
    });
    await using platform = await createPlatform({
      engines: { store: 'memory:' },
      observer: telemetry.observer,
      modules: [
        defineModule({
          name: 'banking',
          aggregates: [account, letter],
          commands: { 'account.open': 'append' },
          reactors: [greetings],
          outbox: [
            {
              name: 'sub:banking:outbox:v1',
              filter: { types: ['letter.sent.v1'] },
              mapper: {
                map: ({ type, aggregate }) => ({
                  integrationType: 'webhook:partner',
                  eventType: type,
                  payload: { id: aggregate.id },
                }),
              },
            },
          ],
          destinations: { webhook },
        }),
      ],
    });
    telemetry.collect(platformCollectors(platform));
    await platform.start();
    await using api = await startApi(platform, { port: 0, observer: telemetry.observer });
    const wanted = { name: 'caller', scopes: ['append'], tenant: 'core' } as const;
    const { secret: token } = await platform.tokens.create(wanted);
    const response = await fetch(`${api.url}/api/v1/commands/account.open`, {
      method: 'POST',
      body: JSON.stringify({ id: 'a-1', payload: { owner: 'Ada' } }),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'x-correlation-id': 'flow-1',
        traceparent: `00-${caller.traceId}-${caller.spanId}-01`,
        tracestate: 'vendor=1',
      },
    });
    assert.equal(response.status, 200);
    await until('the message is sent', async () => (await outboxOf(platform).counts()).SENT === 1);
    const metrics = await telemetry.metrics();
    for (const line of [
      'commands_handled_total{bc="banking",aggregate="account",version="1",command="account.open",tenant="core",outcome="accepted"} 1',
      'events_published_total{event_type="letter.sent.v1"} 1',
      'events_processed_total{handler="sub:banking:greetings:v1",event_type="account.opened.v1",status="success",bc="banking",tenant="core",agg="account",action="opened",version="1"} 1',
      'dead_letter_queue_size{handler="sub:banking:outbox:v1"} 0',
      'outbox_enqueued_total{source="sub:banking:outbox:v1"} 1',
      'outbox_pending_total 0',
      'outbox_claimed_total 1',
      'outbox_sent_total{integration_type="webhook:partner",event_type="letter.sent.v1"} 1',
      'outbox_messages{status="SENT"} 1',
      'queue_depth{queue="outbox"} 0',
      'delivery_attempts_total{destination="webhook:partner",outcome="sent"} 1',
      'telemetry_collector_up{collector="outbox"} 1',
    ]) {
      assert.ok(metrics.split('\n').includes(line), `${line}\nin\n${metrics}`);
    }
    // The lag depends on the checkpoint, which is saved later.
    assert.match(metrics, /projection_lag_seconds\{sub="sub:banking:greetings:v1"\} \d/);
    assert.doesNotMatch(metrics, /telemetry_dropped_total/);
    assert.match(metrics, /outbox_delivery_duration_ms_count\{.*outcome="sent"\} 1/);
    assert.match(metrics, /event_processing_duration_seconds_bucket\{.*le="\+Inf"\} 1/);
  }

  // Creating the token is a separate flow.
  const isOther = ({ traceId }: CollectedSpan): boolean => traceId !== caller.traceId;
  assert.deepEqual(
    collector
      .spans()
      .filter(isOther)
      .map(({ name }) => name),
    ['append $millrace'],
  );
  const spans = collector.spans().filter((span) => !isOther(span));
  assert.equal(collector.resource()['service.name'], 'bank');
  assert.equal(collector.resource()['service.version'], '1.2.3');
  assert.equal(collector.resource()['deployment.environment.name'], 'test lab');
  const request = child(
    spans,
    { ...(spans[0] as CollectedSpan), ...caller },
    'POST /api/v1/commands/account.open',
  );
  const root = child(spans, request, 'handle account.open');
  const append = child(spans, root, 'append banking.account.v1');
  const handled = child(spans, root, 'handle sub:banking:greetings:v1');
  const second = child(spans, handled, 'handle letter.send');
  child(spans, second, 'append banking.letter.v1');
  const projected = child(spans, second, 'handle sub:banking:outbox:v1');
  const enqueued = child(spans, projected, 'enqueue webhook:partner');
  const delivered = child(spans, enqueued, 'deliver webhook:partner');

  assert.equal(Number(request.attributes['http.response.status_code']), 200);
  const { spanId } = delivered;
  const [posted] = receiver.requests;
  assert.equal(posted?.headers['traceparent'], `00-${caller.traceId}-${spanId}-01`);
  assert.equal(posted?.headers['tracestate'], 'vendor=1');

  const [internal, server, producer, consumer] = [1, 2, 4, 5];
  assert.deepEqual(
    [request, root, append, handled, enqueued, delivered].map(({ kind }) => kind),
    [server, internal, producer, consumer, producer, producer],
  );
  for (const span of [root, append, handled, second, projected, enqueued, delivered]) {
    assert.equal(span.attributes['messaging.message.conversation_id'], 'flow-1', span.name);
    assert.equal(span.attributes['millrace.tenant'], 'core', span.name);
  }
  assert.deepEqual(
    Object.entries(handled.attributes).filter(([key]) => /^messaging\.(?!message)/.test(key)),
    Object.entries({
      'messaging.consumer.group.name': 'sub:banking:greetings:v1',
      'messaging.destination.name': 'banking.account.v1-core-a-1',
      'messaging.system': 'millrace',
      'messaging.operation.name': 'handle',
      'messaging.operation.type': 'process',
      'messaging.destination.template': 'banking.account.v1',
    }),
  );
  assert.equal(delivered.attributes['messaging.destination.name'], 'webhook:partner');
  assert.equal(delivered.attributes['messaging.operation.type'], 'send');
  assert.equal(delivered.attributes['millrace.outcome'], 'sent');

  const logged = stream.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const line = logged.find((each) => each['phase'] === 'SENT');
  assert.equal(line?.['operation'], 'OUTBOX_DELIVER');
  assert.deepEqual([line?.['correlationId'], line?.['tenantId']], ['flow-1', 'core']);
  assert.deepEqual([line?.['app'], line?.['version']], ['bank', '1.2.3']);
});

test('a batch is linked to the traces of its events, and follow-up events stay in those traces', async () => {
  await using collector = await startOtlpCollector();
  const traces = ['1', '2', '3', '4'].map(
    (digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`,
  );
  const batches: { readonly own: unknown; readonly caused: unknown }[][] = [];
  const done = Promise.withResolvers<void>();
  {
    await using tracing = await startOtlpTracing({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` },
    });
    await using platform = await createPlatform({
      engines: { store: 'memory:' },
      observer: tracing.observer,
      modules: [
        defineModule({
          name: 'banking',
          subscriptions: [
            subscription({
              name: 'sub:banking:batches:v1',
              lanes: 1,
              async batchHandler(events, { causedBy }) {
                batches.push(
                  events.map((each) => ({
                    own: each.headers?.['traceparent'],
                    caused: causedBy(each).headers['traceparent'],
                  })),
                );
                if (batches.flat().length === traces.length) done.resolve();
                // The other events gather in this turn.
                await nextTurn();
              },
            }),
          ],
        }),
      ],
    });
    const aggregate = { bc: 'banking', type: 'account', id: 'a-1' };
    await platform.engines.store.append(
      'banking.account.v1-core-a-1',
      traces.map((traceparent) =>
        createEnvelope(opened({ owner: 'Ada' }), {
          tenant: 'core',
          aggregate,
          headers: { traceparent },
        }),
      ),
    );
    await platform.start();
    await done.promise;
  }
  const batch = batches.find((each) => each.length > 1) ?? [];
  assert.ok(batch.length > 1);
  for (const { own, caused } of batch) assert.equal(caused, own);
  const span = collector
    .spans()
    .find(
      ({ attributes }) =>
        attributes['messaging.consumer.group.name'] && attributes['messaging.batch.message_count'],
    );
  assert.equal(span?.name, 'handle sub:banking:batches:v1');
  assert.equal(span?.parentSpanId, undefined);
  assert.equal(Number(span?.attributes['messaging.batch.message_count']), batch.length);
  assert.deepEqual(
    span?.links.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
    batch.map(({ own }) => own),
  );
  const append = collector.spans().find(({ name }) => name === 'append banking.account.v1');
  assert.equal(append?.traceId, '1'.repeat(32));
  assert.deepEqual(
    append?.links.map(({ traceId }) => traceId),
    ['2', '3', '4'].map((digit) => digit.repeat(32)),
  );
});

test('a failure is an error in the trace, with its code', async () => {
  await using collector = await startOtlpCollector();
  {
    await using tracing = await startOtlpTracing({
      env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` },
    });
    await using platform = await createPlatform({
      engines: { store: 'memory:' },
      observer: tracing.observer,
      modules: [defineModule({ name: 'banking', aggregates: [account] })],
    });
    await platform.engines.store[Symbol.asyncDispose]();
    const command = { type: 'account.open', payload: { owner: 'Ada' } };
    await assert.rejects(platform.handle({ tenant: 'core', id: 'a-1', command }));
  }
  const [span] = collector.spans();
  assert.equal(span?.status.code, 2);
  assert.equal(span?.attributes['error.type'], 'STORE_CLOSED');
});

test('an unsampled trace is not exported, and its context says so', async () => {
  await using collector = await startOtlpCollector();
  {
    await using tracing = await startOtlpTracing({
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0',
      },
    });
    const span = tracing.observer.span('handle command', {});
    assert.match(span.context?.traceparent ?? '', /-00$/);
    span.end();
    const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    tracing.observer.span('handle command', {}, { traceparent }).end();
    // An invalid traceparent starts a new trace, which is not sampled.
    tracing.observer.span('handle command', {}, { traceparent: 'nonsense' }).end();
  }
  assert.deepEqual(
    collector.spans().map(({ traceId }) => traceId),
    ['1'.repeat(32)],
  );
});

test('a collector that never responds delays neither the work nor the shutdown', async () => {
  await using silent = await startHttpReceiver({ answer: () => undefined });
  const warned: string[] = [];
  const log = (_fields: object, message: string): void => void warned.push(message);
  {
    await using tracing = await startOtlpTracing({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: silent.url },
      log: { debug: log, info: log, warn: log, error: log },
      drainMs: 100,
    });
    for (let at = 0; at < 10_000; at += 1) tracing.observer.span('handle command', {}).end();
  }
  assert.ok(warned.includes('could not send the last traces'));
});

test('invalid settings are typed errors that name the variable', async () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
  for (const [field, env] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }],
    ['OTEL_TRACES_SAMPLER', { ...endpoint, OTEL_TRACES_SAMPLER: 'sometimes' }],
    [
      'OTEL_TRACES_SAMPLER_ARG',
      { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
    ],
    ['OTEL_RESOURCE_ATTRIBUTES', { ...endpoint, OTEL_RESOURCE_ATTRIBUTES: 'nonsense' }],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['MILLRACE_LOG_LEVEL', { MILLRACE_LOG_LEVEL: 'loud' }],
    ['MILLRACE_LOG_FORMAT', { MILLRACE_LOG_FORMAT: 'xml' }],
  ] as const) {
    await assert.rejects(
      createTelemetry({ env, stream: silentStream() }),
      (error) => hasCode(error, 'CONFIG_INVALID') && error.details['field'] === field,
      field,
    );
  }
});

test('without an endpoint no spans are exported, and a silent log writes nothing', async () => {
  const stream = silentStream();
  for (const env of [
    { MILLRACE_LOG_LEVEL: 'silent' },
    { MILLRACE_LOG_LEVEL: 'silent', OTEL_EXPORTER_OTLP_ENDPOINT: 'x', OTEL_SDK_DISABLED: 'true' },
  ]) {
    await using telemetry = await createTelemetry({ env, stream });
    assert.equal(telemetry.observer.span, undefined);
    telemetry.observer.log?.error({}, 'hello');
  }
  assert.deepEqual(stream.lines, []);
});
