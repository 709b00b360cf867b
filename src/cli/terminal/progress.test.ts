import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventRate, createProgress, progressBar } from './progress.ts';

test('clamps a progress bar to 0 and 100 percent', () => {
  assert.equal(progressBar(0, 'a'), `${'░'.repeat(20)}   0 %  a`);
  assert.equal(progressBar(0.5, 'a'), `${'█'.repeat(10)}${'░'.repeat(10)}  50 %  a`);
  assert.equal(progressBar(0.999, 'a').includes(' 99 %'), true);
  assert.equal(progressBar(7, 'a'), `${'█'.repeat(20)} 100 %  a`);
  assert.equal(progressBar(-1, 'a'), progressBar(0, 'a'));
});

test('the event rate counts from the creation of the meter', () => {
  let now = 1_000;
  const rate = createEventRate(() => now);
  now = 3_000;
  assert.equal(rate(12_345), '12,345 events, 6,173/s');
});

test('shows progress of a long run on a terminal only, and erases it', () => {
  for (const isTTY of [true, false]) {
    let now = 0;
    const writes: string[] = [];
    const progress = createProgress({ write: (text) => writes.push(text), isTTY }, () => now);
    progress.show('early');
    now = 600;
    progress.show('first');
    now = 650;
    progress.show('too soon');
    now = 800;
    progress.show('second');
    progress.clear();
    progress.clear();
    const erase = '\r\u001b[K';
    assert.deepEqual(writes, isTTY ? ['first', erase, 'second', erase] : []);
  }
});
