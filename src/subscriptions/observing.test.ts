import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attributes, Observer, TraceContext } from '../foundation/observer.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { createRig, labelOf, streamOf, until } from '../testing/support/subscriptions/rig.ts';
import { Snooze, Terminal } from '../foundation/handler-outcome.ts';
import { subscriptionAdmin } from './subscription-admin.ts';
import { startSubscription } from './subscription-runner.ts';
import { subscription, type Caused } from './subscription.ts';

const name = 'sub:banking:observed:v1';

interface SeenSpan {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
  readonly parent: TraceContext | undefined;
  failure?: unknown;
  ends: number;
}

function spanRecorder(): { readonly spans: SeenSpan[]; readonly observer: Observer } {
  const spans: SeenSpan[] = [];
  const observer: Observer = {
    span(spanName, attributes, parent) {
      const seen: SeenSpan = { name: spanName, attributes: { ...attributes }, parent, ends: 0 };
      spans.push(seen);
      return {
        context: { traceparent: `00-trace-${spans.length}-01` },
        set: (more: Attributes) => void Object.assign(seen.attributes, more),
        fail: (error) => void (seen.failure = error),
        end: () => void (seen.ends += 1),
      };
    },
  };
  return { spans, observer };
}

test('every attempt has its own span, a child of the span that appended the event', async () => {
  const { db, clock } = createRig();
  const { spans, observer } = spanRecorder();
  const event = newEvent({
    eventId: 'e-1',
    correlationId: 'flow-1',
    causationId: 'cause-1',
    headers: { traceparent: '00-command-01', tracestate: 'a=b', dataClass: 'x' },
  });
  await db.store.append(streamOf('a'), [event]);
  const outcomes: (() => void)[] = [
    () => {
      throw new Error('timeout');
    },
    () => {
      throw new Snooze(10);
    },
    () => undefined,
  ];
  const caused: Caused[] = [];
  const each = subscription({
    name,
    async handler(_event, context) {
      caused.push(context.caused);
      outcomes.shift()?.();
    },
  });
  await using runner = await startSubscription(db, each, { clock, observer });
  await until(clock, () => spans.length === 3 && spans.every(({ ends }) => ends === 1));
  const common = {
    handler: name,
    eventId: 'e-1',
    eventType: event.type,
    stream: streamOf('a'),
    tenant: 'core',
    correlationId: 'flow-1',
    causationId: 'cause-1',
  };
  assert.deepEqual(
    spans.map(({ attributes }) => attributes),
    [
      { ...common, attempt: 1, outcome: 'failed' },
      { ...common, attempt: 2, outcome: 'snooze' },
      { ...common, attempt: 2 },
    ],
  );
  assert.deepEqual(spans[0]?.parent, { traceparent: '00-command-01', tracestate: 'a=b' });
  assert.match(String(spans[0]?.failure), /timeout/);
  assert.deepEqual([spans[1]?.failure, spans[2]?.failure], [undefined, undefined]);
  assert.deepEqual(caused[2], {
    correlationId: 'flow-1',
    causationId: 'e-1',
    headers: { traceparent: '00-trace-3-01' },
  });
  void runner;
});

test('without an observer the trace of the event continues, and a batch has one span', async () => {
  const { db, clock, append } = createRig();
  const headers = { traceparent: '00-command-01' };
  await db.store.append(streamOf('a'), [newEvent({ headers, payload: { number: 1 } })]);
  await append('a', 2);
  const seen: Caused[][] = [];
  const each = subscription({
    name,
    batchSize: 10,
    lanes: 1,
    batchHandler: (events, { causedBy }) => void seen.push(events.map(causedBy)),
  });
  {
    await using runner = await startSubscription(db, each, { clock });
    await runner.whenCaughtUp();
  }
  assert.deepEqual(
    seen.flat().map((caused) => caused.headers),
    [headers, {}],
  );
  const { spans, observer } = spanRecorder();
  const admin = subscriptionAdmin(db, { clock });
  await admin.reset(name);
  await using runner = await startSubscription(db, each, { clock, observer });
  await runner.whenCaughtUp();
  assert.equal(
    spans.reduce((sum, { attributes }) => sum + Number(attributes['events'] ?? 1), 0),
    2,
  );
});

test('a failing observer, logger or alert hook does not stop the subscription', async (context) => {
  const { db, clock, append } = createRig();
  const broken = (): never => {
    throw new Error('the observer is broken');
  };
  const log = { debug: broken, info: broken, warn: broken, error: broken };
  const observers: readonly Observer[] = [
    { count: broken, gauge: broken, record: broken, span: broken, log },
    {
      span: () => ({
        get context() {
          return broken();
        },
        set: broken,
        fail: broken,
        end: broken,
      }),
    },
  ];
  const { mock } = context.mock.method(process, 'emitWarning', () => undefined);
  for (const [at, observer] of observers.entries()) {
    const seen: string[] = [];
    let alerts = 0;
    const each = subscription({
      name: `sub:banking:broken${'x'.repeat(at)}:v1`,
      handler(event) {
        if (labelOf(event).endsWith('1')) throw new Terminal('poison');
        seen.push(labelOf(event));
      },
    });
    await append('a', 1, 2);
    await append('b', 1, 2);
    await using runner = await startSubscription(db, each, {
      clock,
      observer,
      onAlert() {
        alerts += 1;
        return alerts === 1 ? broken() : Promise.reject(new Error('the hook is broken'));
      },
    });
    await runner.whenCaughtUp();
    assert.equal(alerts, (at + 1) * 2);
    assert.equal(seen.length, (at + 1) * 2);
  }
  const warnings = mock.calls.map(({ arguments: [warning] }) => String(warning));
  assert.deepEqual(warnings, ['Error: the observer is broken']);
});

test('a failing method of an observer is logged once', async () => {
  const { db, clock, append } = createRig();
  const logged: [object, string][] = [];
  const ignore = (): void => undefined;
  const observer: Observer = {
    count: () => {
      throw new Error('no metrics today');
    },
    log: {
      debug: ignore,
      info: ignore,
      warn: ignore,
      error: (fields, message) => void logged.push([fields, message]),
    },
  };
  await append('a', 1, 2, 3);
  await using runner = await startSubscription(db, subscription({ name, handler: ignore }), {
    clock,
    observer,
  });
  await runner.whenCaughtUp();
  assert.deepEqual(
    logged.map(([fields, message]) => [message, 'part' in fields && fields.part]),
    [['observer failed', 'count']],
  );
});

test('a dead letter raises one alert, and none after a restart or a failed replay', async () => {
  const { db, clock, append } = createRig();
  const alerts: string[] = [];
  const gauges: number[] = [];
  const observer: Observer = {
    gauge: (metric, value) => void (metric === 'dead_letter_queue_size' && gauges.push(value)),
  };
  let isBroken = true;
  const seen: string[] = [];
  const each = subscription({
    name,
    onDeadLetter: 'park',
    handler(event) {
      if (isBroken && labelOf(event) === 'a1') throw new Terminal('poison');
      seen.push(labelOf(event));
    },
  });
  const onAlert = ({ eventId }: { readonly eventId: string }): void => void alerts.push(eventId);
  const admin = subscriptionAdmin(db, { clock });
  await append('a', 1, 2);
  for (let restart = 0; restart < 3; restart += 1) {
    await using runner = await startSubscription(db, each, { clock, observer, onAlert });
    await until(clock, () => alerts.length === 1);
    const [letter] = await db.subscriptions.deadLetters.list({});
    await admin.replay(letter?.id ?? '', { by: 'ada' });
    runner.poll();
    await until(clock, async () => {
      const [again] = await db.subscriptions.deadLetters.list({});
      return again?.replayRequestedAt === null && again.attempts === restart + 2;
    });
  }
  assert.equal(alerts.length, 1);
  assert.equal(gauges.at(-1), 1);
  isBroken = false;
  await using runner = await startSubscription(db, each, { clock, observer, onAlert });
  await admin.replayAll({}, { by: 'ada' });
  await until(clock, () => seen.length === 2);
  assert.deepEqual(seen, ['a1', 'a2']);
  await until(clock, () => gauges.at(-1) === 0);
  assert.equal(alerts.length, 1);
  void runner;
});
