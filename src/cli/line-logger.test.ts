import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { createLineLogger, type LineLoggerOptions } from './line-logger.ts';
import { createPaint } from './terminal/paint.ts';

function linesOf(options: Partial<LineLoggerOptions>) {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text) };
  const rest = { paint: createPaint(false), isJson: false, level: 'info' as const, ...options };
  return { lines, log: createLineLogger({ output, ...rest }) };
}

test('a line for people has its fields behind the message, and what is not asked for is left out', () => {
  const { lines, log } = linesOf({});
  log.debug({}, 'unheard');
  log.warn({ phase: 'FAILED', tenantId: undefined, error: 'HTTP 500', count: 2 }, 'outbox');
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    /^\d{4}-\d\d-\d\dT[\d:.]+Z WARN outbox phase=FAILED error="HTTP 500" count=2\n$/,
  );
});

test('a line for machines is JSON, errors with their code, and a line break ends no line', () => {
  const { lines, log } = linesOf({ isJson: true, level: 'debug' });
  log.debug({ a: 'x\ny' }, 'one');
  log.error({ err: new MillraceError('STORE_UNAVAILABLE', 'away') }, 'two');
  assert.deepEqual(
    lines.map((line) => {
      assert.equal(line.indexOf('\n'), line.length - 1);
      const { time: _time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      return rest;
    }),
    [
      { level: 'debug', message: 'one', a: 'x\ny' },
      { level: 'error', message: 'two', err: 'STORE_UNAVAILABLE: away' },
    ],
  );
});
