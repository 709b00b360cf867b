// The access rules, and the routes that are made from the table.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChatDocument } from '../documents.ts';
import type { WorkspaceDocument } from '../workspace.ts';
import { accessRules, chatRole, decideAccess, workspaceRole, type Action } from './access.ts';

const joinedAt = '2026-11-16T10:00:00.000Z';
const workspace: WorkspaceDocument = {
  workspaceId: 'w',
  name: 'Mill',
  createdBy: 'boss',
  createdAt: joinedAt,
  invites: [],
  members: [
    { userId: 'boss', username: 'boss', role: 'admin', joinedAt },
    { userId: 'kim', username: 'kim', role: 'member', joinedAt },
    { userId: 'host', username: 'host', role: 'member', joinedAt },
  ],
};
const chat = (isPublic: boolean): ChatDocument => ({
  chatId: 'c',
  workspaceId: 'w',
  type: 'discussion',
  title: 'Wheel',
  isPublic,
  createdBy: 'host',
  createdAt: joinedAt,
  participants: [
    { userId: 'host', role: 'admin', joinedAt },
    { userId: 'gone', role: 'admin', joinedAt },
  ],
});

test('the role in a chat depends on the workspace first, then on the chat', () => {
  const roles = ['boss', 'kim', 'host', 'gone', 'eve'].map((userId) => [
    userId,
    workspaceRole(workspace, userId),
    chatRole(chat(true), workspace, userId),
    chatRole(chat(false), workspace, userId),
  ]);
  assert.deepEqual(roles, [
    ['boss', 'admin', 'visitor', 'stranger'],
    ['kim', 'member', 'visitor', 'stranger'],
    ['host', 'member', 'chat-admin', 'chat-admin'],
    ['gone', 'stranger', 'stranger', 'stranger'],
    ['eve', 'stranger', 'stranger', 'stranger'],
  ]);
  assert.equal(chatRole(undefined, workspace, 'boss'), 'stranger');
  assert.equal(workspaceRole(undefined, 'boss'), 'stranger');
});

test('a resource is hidden from strangers, and forbidden actions are reported to others', () => {
  for (const action of Object.keys(accessRules) as Action[]) {
    assert.equal(decideAccess('stranger', action), 'hidden', action);
  }
  assert.equal(decideAccess('member', 'member.add'), 'forbidden');
  assert.equal(decideAccess('admin', 'member.add'), 'allowed');
  assert.equal(decideAccess('visitor', 'message.post'), 'allowed');
  assert.equal(decideAccess('participant', 'participant.remove'), 'forbidden');
});
