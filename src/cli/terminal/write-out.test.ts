import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { writeOut } from './write-out.ts';

function slowOutput() {
  const waiting: (() => void)[] = [];
  const output = {
    write: () => false,
    once: (_event: 'drain', listener: () => void) => waiting.push(listener),
  };
  return { output, drain: () => waiting.splice(0).forEach((listener) => listener()) };
}

test('waits until the reader has drained the output', async () => {
  const { output, drain } = slowOutput();
  let done = false;
  const writing = writeOut(output, 'a', new AbortController().signal).then(() => (done = true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(done, false);
  drain();
  await writing;
});

test('does not wait for a reader after Ctrl-C', async () => {
  const { output } = slowOutput();
  const stop = new AbortController();
  const writing = writeOut(output, 'a', stop.signal);
  stop.abort();
  await assert.rejects(writing, (error) => hasCode(error, 'ABORTED'));
  await assert.rejects(() => writeOut(output, 'b', stop.signal));
});

test('writes at once to an output without backpressure', async () => {
  await writeOut({ write: () => undefined }, 'a', AbortSignal.abort());
});
