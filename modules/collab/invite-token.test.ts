import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newInviteToken, parseInviteToken } from './invite-token.ts';

test('a token leads back to its invite, and only its hash is kept', () => {
  const { token, ...kept } = newInviteToken({ workspaceId: 'w.1_a-b', inviteId: 'i-1' });
  assert.deepEqual(parseInviteToken(token), kept);
  const [, , secret = ''] = token.split('~');
  assert.ok(secret.length === 43 && !JSON.stringify(kept).includes(secret));
});

test('two tokens of one invite have nothing in common', () => {
  const place = { workspaceId: 'w', inviteId: 'i' };
  assert.notEqual(newInviteToken(place).tokenHash, newInviteToken(place).tokenHash);
});

test('what is no token is none', () => {
  const { token } = newInviteToken({ workspaceId: 'w', inviteId: 'i' });
  for (const bad of [
    '',
    '~~',
    token.slice(1),
    `${token}x`,
    token.slice(0, -1),
    token.replace('~', '/'),
  ]) {
    assert.equal(parseInviteToken(bad), undefined, bad);
  }
});
