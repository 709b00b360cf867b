import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSince } from './read-params.ts';

test('since is parsed as ntfy parses it', () => {
  const at = { isPoll: false, nowMs: 1_800_000_000_000 };
  assert.deepEqual(parseSince('', at), { kind: 'none' });
  assert.deepEqual(parseSince('', { ...at, isPoll: true }), { kind: 'all' });
  assert.deepEqual(parseSince('10m', at), { kind: 'time', seconds: 1_799_999_400 });
  assert.throws(() => parseSince('2d', at), /invalid since/);
});
