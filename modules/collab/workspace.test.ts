import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  addMember,
  changeMemberRole,
  createInvite,
  createWorkspace,
  inviteCreated,
  inviteRevoked,
  inviteUsed,
  memberAdded,
  memberRemoved,
  memberRoleChanged,
  removeMember,
  revokeInvite,
  useInvite,
  workspaceCreated,
} from './workspace-events.ts';
import { newInviteToken, parseInviteToken, workspace } from './workspace.ts';

const ada = { userId: 'u-ada', username: 'ada', role: 'admin' } as const;
const bob = { userId: 'u-bob', username: 'bob', role: 'member' } as const;
const by = ada.userId;
const created = [workspaceCreated({ name: 'Team', createdBy: by }), memberAdded(ada)];
const team = [...created, memberAdded(bob)];
const nowMs = Date.UTC(2025, 8, 30, 10);
const [secret, other] = ['a'.repeat(64), 'b'.repeat(64)];
const invite = {
  inviteId: 'i-1',
  tokenHash: secret,
  expiresAt: '2025-09-30T11:00:00.000Z',
  maxUses: 1,
  role: 'member',
} as const;
const invited = [...created, inviteCreated({ ...invite, createdBy: by })];
const using = { inviteId: 'i-1', tokenHash: secret, userId: 'u-bob', username: 'bob' };

test('the creator of a workspace is its first admin', () => {
  given(workspace, [])
    .when(createWorkspace({ name: 'Team', createdBy: by, username: 'ada' }))
    .then(created);
  given(workspace, created)
    .when(createWorkspace({ name: 'Team', createdBy: by, username: 'ada' }))
    .thenRejected('workspace-exists');
});

test('admins add members, and an existing member gets the new role', () => {
  given(workspace, created)
    .when(addMember({ ...bob, by }))
    .then([memberAdded(bob)]);
  given(workspace, team)
    .when(addMember({ ...bob, by }))
    .then([]);
  given(workspace, team)
    .when(addMember({ ...bob, role: 'admin', by }))
    .then([memberRoleChanged({ ...bob, role: 'admin' })])
    .thenState(({ members: { 'u-bob': member } }) => {
      assert.deepEqual(member, { username: 'bob', role: 'admin', sinceMs: nowMs });
      return true;
    });
  given(workspace, team)
    .when(addMember({ userId: 'u-c', username: 'c', role: 'member', by: bob.userId }))
    .thenRejected('not-an-admin');
  given(workspace, created)
    .when(addMember({ ...bob, by: 'stranger' }))
    .thenRejected('not-a-member');
  given(workspace, [])
    .when(addMember({ ...bob, by }))
    .thenRejected('workspace-unknown');
});

test('ids such as constructor are not found in empty records', () => {
  for (const stranger of ['constructor', '__proto__', 'toString']) {
    given(workspace, created)
      .when(addMember({ ...bob, by: stranger }))
      .thenRejected('not-a-member');
    given(workspace, created)
      .when(useInvite({ ...using, inviteId: stranger }))
      .thenRejected('invite-unknown');
  }
  const proto = { ...bob, userId: '__proto__' };
  given(workspace, [...created, memberAdded(proto)])
    .when(removeMember({ userId: '__proto__', by: '__proto__' }))
    .then([memberRemoved(proto)]);
});

test('members leave, and admins remove members', () => {
  given(workspace, team)
    .when(removeMember({ userId: bob.userId, by: bob.userId }))
    .then([memberRemoved(bob)]);
  given(workspace, team)
    .when(removeMember({ userId: bob.userId, by }))
    .then([memberRemoved(bob)])
    .thenState(({ members }) => Object.keys(members).join() === ada.userId);
  given(workspace, created)
    .when(removeMember({ userId: bob.userId, by }))
    .then([]);
  given(workspace, team)
    .when(removeMember({ userId: by, by: bob.userId }))
    .thenRejected('not-an-admin');
  given(workspace, team)
    .when(removeMember({ userId: 'x', by: 'x' }))
    .thenRejected('not-a-member');
});

test('the last admin can neither leave nor become a member', () => {
  given(workspace, team)
    .when(removeMember({ userId: by, by }))
    .thenRejected('last-admin');
  given(workspace, team)
    .when(changeMemberRole({ userId: by, role: 'member', by }))
    .thenRejected('last-admin');
  given(workspace, [...team, memberRoleChanged({ ...bob, role: 'admin' })])
    .when(removeMember({ userId: by, by }))
    .then([memberRemoved(ada)]);
});

test('roles are changed by admins', () => {
  given(workspace, team)
    .when(changeMemberRole({ userId: bob.userId, role: 'admin', by }))
    .then([memberRoleChanged({ ...bob, role: 'admin' })]);
  given(workspace, team)
    .when(changeMemberRole({ userId: bob.userId, role: 'member', by }))
    .then([]);
  given(workspace, team)
    .when(changeMemberRole({ userId: 'x', role: 'member', by }))
    .thenRejected('member-unknown');
  given(workspace, team)
    .when(changeMemberRole({ userId: by, role: 'member', by: bob.userId }))
    .thenRejected('not-an-admin');
});

test('admins create invites that expire in the future', () => {
  given(workspace, created)
    .when(createInvite({ ...invite, by }))
    .then([inviteCreated({ ...invite, createdBy: by })]);
  given(workspace, invited)
    .when(createInvite({ ...invite, by }))
    .then([]);
  given(workspace, invited)
    .when(createInvite({ ...invite, tokenHash: other, by }))
    .thenRejected('invite-exists');
  given(workspace, team)
    .when(createInvite({ ...invite, by: bob.userId }))
    .thenRejected('not-an-admin');
  given(workspace, created)
    .when(createInvite({ ...invite, expiresAt: new Date(nowMs).toISOString(), by }))
    .thenRejected('invite-expired');
});

test('an invite admits as many users as it allows, with its role', () => {
  given(workspace, invited)
    .when(useInvite(using))
    .then([inviteUsed({ inviteId: 'i-1', userId: 'u-bob' }), memberAdded(bob)]);
  const used = [...invited, inviteUsed({ inviteId: 'i-1', userId: 'u-bob' }), memberAdded(bob)];
  given(workspace, used).when(useInvite(using)).then([]);
  given(workspace, used)
    .when(useInvite({ ...using, userId: 'u-c', username: 'c' }))
    .thenRejected('invite-used-up');
});

test('an invite expires, can be revoked, and needs its secret', () => {
  given(workspace, invited)
    .when(useInvite(using), { nowMs: Date.parse(invite.expiresAt) })
    .thenRejected('invite-expired');
  given(workspace, invited)
    .when(useInvite({ ...using, tokenHash: other }))
    .thenRejected('invite-unknown');
  given(workspace, invited)
    .when(revokeInvite({ inviteId: 'i-1', by }))
    .then([inviteRevoked({ inviteId: 'i-1', revokedBy: by })]);
  const revoked = [...invited, inviteRevoked({ inviteId: 'i-1', revokedBy: by })];
  given(workspace, revoked).when(useInvite(using)).thenRejected('invite-unknown');
  given(workspace, revoked)
    .when(revokeInvite({ inviteId: 'i-1', by }))
    .then([]);
  given(workspace, [...team, inviteCreated({ ...invite, createdBy: by })])
    .when(revokeInvite({ inviteId: 'i-1', by: bob.userId }))
    .thenRejected('not-an-admin');
});

test('a token identifies its invite, and only its hash is stored', () => {
  const { token, ...stored } = newInviteToken({ workspaceId: 'w.1_a-b', inviteId: 'i-1' });
  assert.deepEqual(parseInviteToken(token), stored);
  const [, , random = ''] = token.split('~');
  assert.ok(random.length === 43 && !JSON.stringify(stored).includes(random));
});

test('two tokens of one invite have different secrets', () => {
  const ids = { workspaceId: 'w', inviteId: 'i' };
  assert.notEqual(newInviteToken(ids).tokenHash, newInviteToken(ids).tokenHash);
});

test('malformed tokens are rejected', () => {
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
