import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventRate, grouped, progressBar } from './progress-bar.ts';

test('a progress bar fills up, and stays within its ends', () => {
  assert.equal(progressBar(0, 'a'), `${'░'.repeat(20)}   0 %  a`);
  assert.equal(progressBar(0.5, 'a'), `${'█'.repeat(10)}${'░'.repeat(10)}  50 %  a`);
  assert.equal(progressBar(0.999, 'a').includes(' 99 %'), true);
  assert.equal(progressBar(7, 'a'), `${'█'.repeat(20)} 100 %  a`);
  assert.equal(progressBar(-1, 'a'), progressBar(0, 'a'));
});

test('a rate counts from its beginning', () => {
  let now = 1_000;
  const rate = createEventRate(() => now);
  now = 3_000;
  assert.equal(rate(12_345), '12,345 events, 6,173/s');
});

test('large counts are grouped', () => {
  assert.deepEqual([0, 999, 1_000, 1_234_567].map(grouped), ['0', '999', '1,000', '1,234,567']);
});
