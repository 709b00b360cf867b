import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { hasCode } from 'millrace/foundation';
import { createSecretBox, parseSecretKeys } from './secret-box.ts';

const keyOf = (id: string) => ({ id, key: randomBytes(32).toString('base64') });
const owner = { tenant: 'core', kind: 'workspace', code: 'acme' };
const isInvalid = (error: unknown): boolean => hasCode(error, 'CONFIG_INVALID');

test('a secret decrypts only for its owner', () => {
  const box = createSecretBox([keyOf('k1')]);
  const sealed = box.seal('xoxb-1', owner);
  assert.equal(box.open(sealed, owner), 'xoxb-1');
  assert.doesNotMatch(sealed, /xoxb/);
  assert.notEqual(box.seal('xoxb-1', owner), sealed);
  for (const other of [{ tenant: 'other' }, { kind: 'app' }, { code: 'b' }]) {
    assert.throws(() => box.open(sealed, { ...owner, ...other }), isInvalid);
  }
  const bytes = Buffer.from(sealed.split('.')[4] ?? '', 'base64url');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  const forged = sealed.replace(/[^.]+$/, bytes.toString('base64url'));
  assert.throws(() => box.open(forged, owner), isInvalid);
});

test('a new first key encrypts, and the old key still decrypts', () => {
  const [old, young] = [keyOf('k1'), keyOf('k2')];
  const sealed = createSecretBox([old]).seal('xoxb-1', owner);
  const both = createSecretBox([young, old]);
  assert.equal(both.open(sealed, owner), 'xoxb-1');
  assert.equal(both.isCurrent(sealed), false);
  const again = both.seal(both.open(sealed, owner), owner);
  assert.equal(both.isCurrent(again), true);
  assert.equal(createSecretBox([young]).open(again, owner), 'xoxb-1');
  assert.throws(() => createSecretBox([young]).open(sealed, owner), isInvalid);
});

test('invalid keys are rejected', () => {
  assert.throws(() => createSecretBox([]), isInvalid);
  assert.throws(() => createSecretBox([{ id: 'k1', key: 'c2hvcnQ=' }]), isInvalid);
  assert.throws(() => createSecretBox([keyOf('k1'), keyOf('k1')]), isInvalid);
  assert.throws(() => parseSecretKeys('nonsense'), isInvalid);
  const [one, two] = [keyOf('k2'), keyOf('k1')];
  assert.deepEqual(parseSecretKeys(`${one.id}:${one.key}, ${two.id}:${two.key}`), [one, two]);
  assert.throws(() => createSecretBox([one]).open('xoxb-1', owner), isInvalid);
});
