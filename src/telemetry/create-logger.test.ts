import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { MillraceError } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { combineObservers } from './create-telemetry.ts';
import { createLogger, type LoggerOptions } from './create-logger.ts';

type Line = Readonly<Record<string, unknown>>;

function collecting(options: LoggerOptions = {}) {
  const texts: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      texts.push(chunk);
      done();
    },
  });
  const log = createLogger({ clock: fakeClock(), stream, ...options });
  return { log, texts, lines: () => texts.map((text) => JSON.parse(text) as Line) };
}

test('a line has its time, level and message, and the given fields', () => {
  const { log, lines } = collecting({ fields: { app: 'shop', env: 'prod' } });
  const fields = { correlationId: 'c-1', tenantId: 'core', operation: 'OUTBOX_DELIVER', n: 1 };
  log.warn({ ...fields, phase: 'FAILED', msg: 'mine', level: 'mine' }, 'delivery failed');
  assert.deepEqual(lines(), [
    {
      level: 'warn',
      timestamp: '2025-09-30T10:00:00.000Z',
      app: 'shop',
      env: 'prod',
      ...fields,
      phase: 'FAILED',
      msg: 'delivery failed',
    },
  ]);
});

test('a line repeats no key, and time and message can have other names', () => {
  const names = { timestampKey: 'time', messageKey: 'message' };
  const { log, texts } = collecting({ fields: { app: 'shop' }, ...names });
  log.info({ app: 'mine', level: 'mine', time: 'mine', message: 'mine', err: 'no' }, 'hello');
  assert.deepEqual(texts, [
    '{"level":"info","time":"2025-09-30T10:00:00.000Z","app":"mine","err":"no","message":"hello"}\n',
  ]);
});

test('a line names its component and its operation, as the naming document requires', () => {
  const { log, lines } = collecting();
  log.info({ source: 'outbox-worker', sub: 'sub:a:b:v1', outboxId: 'o-1' }, 'sent');
  log.warn({ sub: 'sub:shop:mail:v1', requestId: 'r-1', outboxId: 'o-1' }, 'late');
  log.warn({ source: 7, context: 'mine', operationId: 'mine', requestId: 'r-1' }, 'own');
  log.info({}, 'nothing');
  const found = lines().map(({ context, operationId }) => [context, operationId]);
  assert.deepEqual(found, [
    [{ component: 'outbox-worker' }, 'o-1'],
    [{ component: 'sub:shop:mail:v1' }, 'r-1'],
    ['mine', 'mine'],
    [undefined, undefined],
  ]);
});

test('lines below the level are not written', () => {
  for (const [level, expected] of [
    ['debug', 4],
    ['info', 3],
    ['error', 1],
    ['silent', 0],
  ] as const) {
    const { log, texts } = collecting({ level });
    for (const each of ['debug', 'info', 'warn', 'error'] as const) log[each]({}, 'hello');
    assert.equal(texts.length, expected);
  }
});

test('secrets and personal data are left out at any depth', () => {
  const { log, texts, lines } = collecting({ redact: ['customerName'] });
  log.info(
    {
      headers: { Authorization: 'Bearer hush-hush-hush', 'set-cookie': ['hush'] },
      api_key: 'hush',
      accessToken: 'hush',
      list: [{ Password: 'hush' }],
      user: { id: 'u1', name: 'hush' },
      userEmail: 'hush',
      customer_name: 'hush',
      payload: { any: 'hush' },
      userId: 'u-1',
      token: 7,
      url: 'postgres://app:hush@db/shop?sslpassword=hush&x=1',
      err: new Error('GET https://x:hush@h/ with Bearer hush-hush.hush, ada@hush.example'),
      ours: `mr_${'0'.repeat(32)}_hush`,
    },
    'hello',
  );
  assert.doesNotMatch(texts[0] ?? '', /hush/);
  const [line] = lines();
  assert.equal(line?.['userId'], 'u-1');
  assert.equal(line?.['token'], 7);
  assert.match(String(line?.['url']), /^postgres:\/\/\[redacted\]@db\/shop\?sslpassword=.*&x=1$/);
});

test('an error keeps its code, retryable, details and causes', () => {
  const { log, lines } = collecting();
  const cause = Object.assign(new TypeError('fetch failed'), { errno: -111 });
  const err = new MillraceError('STORE_CLOSED', 'closed', { cause, details: { n: 1 } });
  log.error({ err }, 'failed');
  log.error(new AggregateError([new Error('one')], 'many'), 'failed');
  const [first, second] = lines() as unknown as readonly { readonly err: Line }[];
  const { stack, cause: below, ...rest } = first?.err ?? {};
  assert.deepEqual(rest, {
    name: 'MillraceError',
    message: 'closed',
    code: 'STORE_CLOSED',
    retryable: err.retryable,
    details: { n: 1 },
  });
  assert.match(String(stack), /create-logger\.test\.ts/);
  assert.equal((below as Line)['errno'], -111);
  assert.equal((below as Line)['message'], 'fetch failed');
  const { errors } = second?.err ?? {};
  assert.equal((errors as readonly Line[])[0]?.['message'], 'one');
});

test('logs any value without an error, a line break or a too long line', () => {
  const { log, texts, lines } = collecting();
  const circle: Record<string, unknown> = { a: 1 };
  circle['self'] = { circle };
  const errorCircle = new Error('round');
  errorCircle.cause = errorCircle;
  const values: unknown[] = [
    circle,
    { err: errorCircle },
    { big: 10n ** 30n, symbol: Symbol('s'), call: () => 1, nan: Number.NaN, none: undefined },
    {
      get bad(): never {
        throw new Error('getter');
      },
      good: 1,
    },
    new Proxy(
      {},
      {
        ownKeys() {
          throw new Error('proxy');
        },
      },
    ),
    { bytes: new Uint8Array(1e6), map: new Map([[{}, 1]]), set: new Set([1]), date: new Date(NaN) },
    { text: 'x'.repeat(1e6), many: Array.from({ length: 1e5 }, () => 'y'.repeat(1_000)) },
    Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, '😀'.repeat(500)])),
    JSON.parse('{"__proto__":{"polluted":true}}'),
    'text',
    null,
    undefined,
    new Proxy(new Error('e'), {
      get() {
        throw new Error('proxy');
      },
    }),
  ];
  for (const value of values) log.info(value as object, 'hello');
  assert.equal(lines().length, values.length);
  for (const text of texts) assert.ok(Buffer.byteLength(text) <= 16_384);
  assert.equal(lines()[3]?.['good'], 1);
  assert.equal(lines()[3]?.['bad'], '[unreadable]');
  assert.equal(lines()[7]?.['truncated'], true);
  assert.ok(lines().every(({ msg, level }) => msg === 'hello' && level === 'info'));
  assert.equal(({} as Line)['polluted'], undefined);
});

test('every value is one line of valid JSON', () => {
  fc.assert(
    fc.property(fc.object({ withBigInt: true, withDate: true, withMap: true }), (fields) => {
      const { log, texts } = collecting();
      log.info(fields, 'hello');
      const [text = ''] = texts;
      assert.equal(text.indexOf('\n'), text.length - 1);
      assert.equal((JSON.parse(text) as Line)['msg'], 'hello');
    }),
  );
});

test('drops lines instead of buffering for a slow reader, and logs how many', async () => {
  const waiting: (() => void)[] = [];
  const seen: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    highWaterMark: 100,
    write(chunk: string, _encoding, done) {
      seen.push(chunk);
      waiting.push(done);
    },
  });
  let dropped = 0;
  const onDropped = (): void => void (dropped += 1);
  const log = createLogger({ clock: fakeClock(), stream, bufferBytesMax: 1_000, onDropped });
  for (let at = 0; at < 10_000; at += 1) log.info({ at }, 'hello');
  assert.ok(stream.writableLength <= 1_000);
  assert.ok(dropped > 9_000);
  const drained = new Promise((resolve) => stream.once('drain', resolve));
  const pump = setInterval(() => waiting.shift()?.(), 0);
  await drained;
  await new Promise((resolve) => stream.end(resolve));
  clearInterval(pump);
  const notice = JSON.parse(seen.at(-1) ?? '') as Line;
  assert.deepEqual([notice['level'], notice['dropped']], ['warn', dropped]);
});

test('a closed reader does not crash the process', async () => {
  const stream = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('EPIPE'), { code: 'EPIPE' })),
  });
  let dropped = 0;
  const log = createLogger({ stream, onDropped: () => void (dropped += 1) });
  const failed = new Promise((resolve) => stream.once('close', resolve));
  log.info({}, 'one');
  await failed;
  log.info({}, 'two');
  assert.equal(dropped, 1);
});

test('the text format has the fields on one line, stacks below it, and no control characters', () => {
  const { log, texts } = collecting({ format: 'text', hasColours: false, fields: { app: 'shop' } });
  const fields = { stream: 'a-1', note: 'two words', 'k\u001b': '\u009b2J\u007f' };
  log.warn({ ...fields, err: new Error('no\u001b[2J') }, 'delivery\nfailed');
  const [text = ''] = texts;
  assert.match(
    text,
    /^\[10:00:00\.000\] WARN: delivery�failed \{"stream":"a-1","note":"two words",/,
  );
  assert.match(text, /\n +at .*create-logger\.test\.ts/);
  assert.ok(!/[^\P{Cc}\n]/u.test(text), JSON.stringify(text));
  assert.ok(!text.includes('shop'));
  const coloured = collecting({ format: 'text', hasColours: true });
  coloured.log.info({}, 'hello');
  assert.ok(coloured.texts[0]?.includes('\u001b[32mINFO'));
});

test('writes to standard error before the call returns, so a kill loses no line', () => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL('create-logger.ts', import.meta.url).href)};
    const log = createLogger();
    for (let at = 0; at < 100; at += 1) log.info({ at }, 'hello');
    process.kill(process.pid, 'SIGKILL');`;
  const args = ['--input-type=module', '--eval', script];
  const { signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(signal, 'SIGKILL');
  const numbers = stderr
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as Line)['at']);
  assert.deepEqual(
    numbers,
    Array.from({ length: 100 }, (_, at) => at),
  );
});

test('combined observers forward every call, and have no method that none of them has', () => {
  const heard: unknown[] = [];
  const spanOf = (name: string, traceparent?: string) => () => ({
    context: traceparent === undefined ? undefined : { traceparent },
    set: () => heard.push(`set ${name}`),
    fail: () => heard.push(`fail ${name}`),
    end: () => heard.push(`end ${name}`),
  });
  const { log, texts } = collecting();
  const observer = combineObservers(
    { count: (name) => heard.push(name), span: spanOf('a') },
    { count: (name) => heard.push(name), span: spanOf('b', '00-1-2-01'), log },
    {},
  );
  assert.deepEqual(Object.keys(observer).toSorted(), ['count', 'log', 'span']);
  observer.count?.('c', {});
  const span = observer.span?.('s', {});
  assert.deepEqual(span?.context, { traceparent: '00-1-2-01' });
  span?.set({});
  span?.fail(new Error('no'));
  span?.end();
  observer.log?.info({}, 'hello');
  assert.deepEqual(heard, ['c', 'c', 'set a', 'set b', 'fail a', 'fail b', 'end a', 'end b']);
  assert.equal(texts.length, 1);
});
