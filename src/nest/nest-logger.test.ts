import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { nestLogger, nestObserver } from './nest-logger.ts';

function heard(): { readonly calls: unknown[][]; readonly logger: ReturnType<typeof recording> } {
  const calls: unknown[][] = [];
  return { calls, logger: recording(calls) };
}

function recording(calls: unknown[][]) {
  const at =
    (level: string) =>
    (...given: readonly unknown[]): void =>
      void calls.push([level, ...given]);
  return { log: at('log'), warn: at('warn'), error: at('error'), debug: at('debug') };
}

test('a line has a constant message and the fields of the application documents', () => {
  const { calls, logger } = heard();
  nestObserver(logger).log.debug({}, 'a disabled level');
  const { log } = nestObserver(logger, { debug: true });
  log.info(
    { tenant: 'core', handler: 'sub:a:b:v1', correlationId: 'c', userId: undefined },
    'done',
  );
  log.debug(
    { operation: 'OUTBOX_CLAIM', phase: 'START', source: 'outbox', tenantId: 't' },
    'outbox',
  );
  assert.deepEqual(calls, [
    ['log', 'done', { tenantId: 'core', source: 'sub:a:b:v1', correlationId: 'c' }],
    [
      'debug',
      'outbox',
      { operation: 'OUTBOX_CLAIM', phase: 'START', source: 'outbox', tenantId: 't' },
    ],
  ]);
});

test('writes an error with its name, message and code, which JSON would omit', () => {
  const { calls, logger } = heard();
  const err = new MillraceError('STORE_UNAVAILABLE', 'away');
  // The outbox document calls its logger with these arguments.
  nestLogger(logger).warn({ msg: 'Outbox enqueue failed', err, eventId: 'e1' });
  const [[level, message, fields] = []] = calls;
  assert.deepEqual([level, message], ['warn', 'Outbox enqueue failed']);
  const { name, code } = (fields as { err: { name: string; code: string } }).err;
  assert.deepEqual([name, code], ['MillraceError', 'STORE_UNAVAILABLE']);
  assert.doesNotThrow(() => JSON.stringify(fields));
});

test('ignores a level that the Nest logger does not have', () => {
  const { logger, calls } = heard();
  const { log, warn, error } = logger;
  nestLogger({ log, warn, error }).debug({}, 'an ignored line');
  assert.deepEqual(calls, []);
});
