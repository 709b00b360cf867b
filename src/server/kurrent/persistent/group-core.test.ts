import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGroupCore, type CoreSettings, type Effect, type Message } from './group-core.ts';

const defaults: CoreSettings = {
  after: -1,
  strategy: 'RoundRobin',
  maxRetryCount: 2,
  messageTimeoutMs: 1_000,
  checkpointAfterMs: 2_000,
  minCheckpointCount: 2,
  maxCheckpointCount: 5,
  maxSubscriberCount: 0,
};

function messages(from: number, to: number): Message<string>[] {
  const all: Message<string>[] = [];
  for (let at = from; at <= to; at += 1) {
    const pin = { stream: `s${at}`, correlation: undefined };
    all.push({ id: `m${at}`, at, pin, target: { stream: `s${at}`, revision: 0 }, content: '' });
  }
  return all;
}

/** Effects in short form: `a<m0`, `a<m0+1` (a retry), `park m0`, `at 3`, `unpark 2`. */
function short(effects: readonly Effect<string>[]): string[] {
  return effects.map((effect) => {
    if (effect.kind === 'park') return `park ${effect.message.id}`;
    if (effect.kind === 'checkpoint') return `at ${effect.at}`;
    if (effect.kind === 'unpark') return `unpark ${effect.upTo}`;
    const { consumer, message, retryCount } = effect;
    return `${consumer}<${message.id}${retryCount === 0 ? '' : `+${retryCount}`}`;
  });
}

function begin(settings: Partial<CoreSettings> = {}) {
  const core = createGroupCore<string>({ ...defaults, ...settings });
  let now = 0;
  return {
    core,
    effects: () => short(core.effects(now)),
    pass: (ms: number) => {
      now += ms;
      core.tick(now);
      return short(core.effects(now));
    },
    connect: (id: string, bufferSize = 10) => core.connect(id, bufferSize, now),
  };
}

test('a consumer gets as many messages as it has room for, and one more for each acknowledgement', () => {
  const { core, connect, effects } = begin();
  connect('a', 2);
  core.push(messages(0, 3));
  assert.deepEqual(effects(), ['a<m0', 'a<m1']);
  core.ack('a', ['m0']);
  assert.deepEqual(effects(), ['a<m2']);
  assert.equal(core.stats().waiting, 1);
});

test('counts the bytes of a message until it is processed', () => {
  const { core, connect, effects } = begin({ maxRetryCount: 0 });
  connect('a', 2);
  core.push(messages(0, 3).map((message) => ({ ...message, bytes: 10 })));
  effects();
  assert.equal(core.stats().bytes, 40);
  core.ack('a', ['m0', 'm0', 'unknown']);
  assert.equal(core.stats().bytes, 30);
  core.nack('a', ['m1'], 'park', 'broken');
  assert.equal(core.stats().bytes, 30, 'a message is in memory until it is parked');
  core.parked('m1');
  effects();
  core.disconnect('a');
  assert.equal(core.stats().bytes, 20);
  const [replayed] = messages(1, 1);
  core.replay([{ parkedAt: 0, message: { id: 'm1', ...replayed, bytes: 10 } as Message<string> }]);
  assert.equal(core.stats().bytes, 30);
});

test('messages wait for the first consumer', () => {
  const { core, connect, effects } = begin();
  core.push(messages(0, 1));
  assert.deepEqual(effects(), []);
  connect('a');
  assert.deepEqual(effects(), ['a<m0', 'a<m1']);
});

test('a retried message is sent first, with its count, and is parked at the limit', () => {
  const { core, connect, effects } = begin();
  connect('a', 1);
  core.push(messages(0, 1));
  assert.deepEqual(effects(), ['a<m0']);
  core.nack('a', ['m0'], 'retry', 'no');
  assert.deepEqual(effects(), ['a<m0+1']);
  core.nack('a', ['m0'], 'retry', 'no');
  assert.deepEqual(effects(), ['a<m0+2']);
  core.nack('a', ['m0'], 'retry', 'no');
  assert.deepEqual(effects(), ['park m0', 'a<m1']);
});

test('a message that is not acknowledged in time is retried', () => {
  const { core, connect, effects, pass } = begin();
  connect('a');
  core.push(messages(0, 0));
  effects();
  assert.deepEqual(pass(999), []);
  assert.deepEqual(pass(1), ['a<m0+1']);
  const never = begin({ messageTimeoutMs: 0 });
  never.connect('a');
  never.core.push(messages(0, 0));
  never.effects();
  assert.deepEqual(never.pass(1e9), []);
});

test('skip completes a message, park parks it, stop waits for the timeout', () => {
  const { core, connect, effects, pass } = begin();
  connect('a');
  core.push(messages(0, 2));
  effects();
  core.nack('a', ['m0'], 'skip', '');
  core.nack('a', ['m1'], 'park', 'bad');
  core.nack('a', ['m2'], 'stop', '');
  assert.deepEqual(effects(), ['park m1']);
  assert.equal(core.stats().checkpoint, 0);
  core.parked('m1');
  assert.equal(core.stats().checkpoint, 1);
  assert.deepEqual(pass(1_000), ['a<m2+1']);
});

test('a nack with stop frees the slot; the message is retried when its consumer leaves', () => {
  const { core, connect, effects } = begin({ messageTimeoutMs: 0 });
  connect('a', 1);
  core.push(messages(0, 1));
  assert.deepEqual(effects(), ['a<m0']);
  core.nack('a', ['m0'], 'stop', '');
  core.nack('a', ['m0'], 'stop', '');
  assert.deepEqual(effects(), ['a<m1']);
  core.ack('a', ['m0', 'm1']);
  assert.equal(core.stats().consumers[0]?.inFlight, 0);
  core.push(messages(2, 2));
  assert.deepEqual(effects(), ['a<m2']);
  core.nack('a', ['m2'], 'stop', '');
  core.disconnect('a');
  connect('b');
  assert.deepEqual(effects(), ['b<m2+1']);
});

test('a message whose parking failed is delivered again', () => {
  const { core, connect, effects } = begin();
  connect('a');
  core.push(messages(0, 0));
  effects();
  core.nack('a', ['m0'], 'park', 'bad');
  assert.deepEqual(effects(), ['park m0']);
  core.parkFailed('m0');
  assert.deepEqual(effects(), ['a<m0']);
});

test('messages of a lost consumer go to others in order, with a higher retry count', () => {
  const { core, connect, effects } = begin();
  connect('a', 3);
  core.push(messages(0, 3));
  effects();
  core.ack('a', ['m1']);
  core.disconnect('a');
  connect('b');
  assert.deepEqual(effects(), ['b<m0+1', 'b<m2+1', 'b<m3']);
  // The acknowledgement of the lost consumer is too late.
  core.ack('a', ['m0']);
  assert.equal(core.stats().inFlight, 3);
});

test('a blocked consumer gets no messages', () => {
  const { core, connect, effects } = begin();
  connect('a');
  core.block('a', true);
  core.push(messages(0, 0));
  assert.deepEqual(effects(), []);
  core.block('a', false);
  assert.deepEqual(effects(), ['a<m0']);
});

test('rejects consumers beyond the maximum', () => {
  const { connect } = begin({ maxSubscriberCount: 1 });
  assert.deepEqual([connect('a'), connect('b')], [true, false]);
});

test('checkpoints wait for the minimum count and time, but not beyond the maximum count', () => {
  const { core, connect, effects, pass } = begin({ messageTimeoutMs: 0 });
  connect('a', 100);
  core.push(messages(0, 19));
  effects();
  core.ack('a', ['m0']);
  assert.deepEqual(pass(5_000), []);
  core.ack('a', ['m1', 'm3']);
  assert.deepEqual(effects(), []);
  assert.deepEqual(pass(1), ['at 1']);
  core.ack('a', ['m2', 'm4', 'm5']);
  assert.deepEqual(effects(), []);
  core.ack('a', ['m6']);
  assert.deepEqual(effects(), ['at 6']);
});

test('the checkpoint advances although no event matches', () => {
  const { core, connect, effects, pass } = begin({ minCheckpointCount: 1 });
  connect('a');
  core.push(messages(3, 3));
  core.passed(50);
  effects();
  assert.equal(core.stats().checkpoint, -1);
  core.ack('a', ['m3']);
  assert.equal(core.stats().checkpoint, 50);
  assert.deepEqual(pass(2_000), ['at 50']);
});

test('a replayed message is removed from the parked stream only after it is processed', () => {
  const { core, connect, effects } = begin();
  connect('a');
  const [m0, m1] = messages(0, 1);
  core.replay([
    { message: m0, parkedAt: 4 },
    { message: undefined, parkedAt: 5 },
    { message: m1, parkedAt: 6 },
  ]);
  assert.deepEqual(effects(), ['a<m0', 'a<m1']);
  core.ack('a', ['m1']);
  assert.deepEqual(effects(), []);
  core.ack('a', ['m0']);
  assert.deepEqual(effects(), ['unpark 6']);
  assert.equal(core.stats().checkpoint, -1);
});

test('two messages with the same id are delivered one after the other', () => {
  const { core, connect, effects } = begin();
  connect('a');
  const [first, second] = messages(0, 1);
  assert.ok(first !== undefined && second !== undefined);
  core.push([first, { ...second, id: first.id }]);
  assert.deepEqual(effects(), ['a<m0']);
  core.ack('a', ['m0']);
  assert.deepEqual(effects(), ['a<m0']);
  core.ack('a', ['m0']);
  assert.equal(core.stats().checkpoint, 1);
});

test('a pinned message waits for its consumer while others are sent', () => {
  const { core, connect, effects } = begin({ strategy: 'Pinned' });
  connect('a', 1);
  connect('b', 1);
  core.push(messages(0, 30));
  const sent = effects();
  assert.deepEqual(new Set(sent.map((each) => each[0])), new Set(['a', 'b']));
  assert.equal(sent.length, 2);
});
