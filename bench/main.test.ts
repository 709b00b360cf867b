import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

function bench(...args: readonly string[]): { code: number | null; out: string; err: string } {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
  });
  return { code: status, out: stdout, err: stderr };
}

test('npm run bench lists the benchmarks without a name, and with --help', () => {
  for (const args of [[], ['--help'], ['contracts', '--help']]) {
    const { code, out } = bench(...args);
    assert.equal(code, 0);
    assert.match(out, /contracts {2,}\w+/);
  }
});

test('rejects an unknown benchmark with exit code 2', () => {
  const { code, out, err } = bench('contrcts', '--json');
  assert.equal(code, 2);
  assert.equal(out, '');
  assert.match(err, /unknown benchmark 'contrcts'. Known: contracts, /);
});

test('rejects an unknown option with exit code 2', () => {
  const { code, err } = bench('contracts', '--fast');
  assert.equal(code, 2);
  assert.match(err, /--fast/);
});
