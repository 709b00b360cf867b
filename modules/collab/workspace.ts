// A workspace: who belongs to it, as what, and who may come by which invite.

import { defineAggregate, Refused } from 'millrace/aggregates';
import type { Role } from './fields.ts';
import { own } from './own.ts';
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

export interface Member {
  readonly username: string;
  readonly role: Role;
  readonly sinceMs: number;
}

export interface Invite {
  readonly tokenHash: string;
  readonly expiresAtMs: number;
  readonly usesLeft: number;
  readonly role: Role;
}

export interface WorkspaceState {
  /** Undefined: there is none. */
  readonly name: string | undefined;
  readonly members: Readonly<Record<string, Member>>;
  /** Without those that were revoked. */
  readonly invites: Readonly<Record<string, Invite>>;
}

const none: WorkspaceState = { name: undefined, members: {}, invites: {} };

export const workspace = defineAggregate({
  bc: 'collab',
  name: 'workspace',
  version: 1,
  events: [
    workspaceCreated,
    memberAdded,
    memberRemoved,
    memberRoleChanged,
    inviteCreated,
    inviteUsed,
    inviteRevoked,
  ],
  commands: [
    createWorkspace,
    addMember,
    removeMember,
    changeMemberRole,
    createInvite,
    useInvite,
    revokeInvite,
  ],
  initial: none,
  // 2: since when somebody is a member.
  snapshot: { codeVersion: 2 },
  evolve: {
    'workspace.created.v1': (state, { name }) => ({ ...state, name }),
    'workspace.member-added.v1': (state, { userId, username, role }, { occurredAt }) => {
      const member = { username, role, sinceMs: Date.parse(occurredAt) };
      return { ...state, members: { ...state.members, [userId]: member } };
    },
    'workspace.member-removed.v1': (state, { userId }) => ({
      ...state,
      members: without(state.members, userId),
    }),
    'workspace.member-role-changed.v1': (state, { userId, username, role }) => {
      const before = own(state.members, userId);
      if (before === undefined) return state;
      const member = { ...before, username, role };
      return { ...state, members: { ...state.members, [userId]: member } };
    },
    'workspace.invite-created.v1': (state, { inviteId, tokenHash, expiresAt, maxUses, role }) => ({
      ...state,
      invites: {
        ...state.invites,
        [inviteId]: { tokenHash, expiresAtMs: Date.parse(expiresAt), usesLeft: maxUses, role },
      },
    }),
    'workspace.invite-used.v1': (state, { inviteId }) => {
      const invite = own(state.invites, inviteId);
      if (invite === undefined) return state;
      const left = { ...invite, usesLeft: invite.usesLeft - 1 };
      return { ...state, invites: { ...state.invites, [inviteId]: left } };
    },
    'workspace.invite-revoked.v1': (state, { inviteId }) => ({
      ...state,
      invites: without(state.invites, inviteId),
    }),
  },
  decide: {
    'workspace.create': ({ name, createdBy, username }, state, { id }) => {
      if (state.name !== undefined) throw new Refused('workspace-exists', `${id} is there already`);
      return [
        workspaceCreated({ name, createdBy }),
        memberAdded({ userId: createdBy, username, role: 'admin' }),
      ];
    },
    'workspace.add-member': ({ by, ...member }, state, { id }) => {
      assertAdmin(state, by, id);
      if (own(state.members, member.userId) === undefined) return memberAdded(member);
      return withRole(state, member.userId, member.role);
    },
    'workspace.remove-member': ({ userId, by }, state, { id }) => {
      if (userId === by) assertMember(state, by, id);
      else assertAdmin(state, by, id);
      const member = own(state.members, userId);
      if (member === undefined) return [];
      assertAdminLeft(state, userId);
      return memberRemoved({ userId, username: member.username, role: member.role });
    },
    'workspace.change-member-role': ({ userId, role, by }, state, { id }) => {
      assertAdmin(state, by, id);
      return withRole(state, userId, role);
    },
    'workspace.create-invite': ({ by, ...invite }, state, { id, nowMs }) => {
      assertAdmin(state, by, id);
      const known = own(state.invites, invite.inviteId);
      if (known?.tokenHash === invite.tokenHash) return [];
      if (known !== undefined)
        throw new Refused('invite-exists', 'the id is one of another invite');
      if (Date.parse(invite.expiresAt) <= nowMs) {
        throw new Refused('invite-expired', 'an invite must end later than now');
      }
      return inviteCreated({ ...invite, createdBy: by });
    },
    'workspace.use-invite': ({ inviteId, tokenHash, userId, username }, state, { nowMs }) => {
      const invite = own(state.invites, inviteId);
      // Whoever does not know the secret is not told which invites there are.
      if (invite === undefined || invite.tokenHash !== tokenHash) {
        throw new Refused('invite-unknown', 'there is no such invite');
      }
      if (own(state.members, userId) !== undefined) return [];
      if (invite.expiresAtMs <= nowMs) throw new Refused('invite-expired', 'the invite has ended');
      if (invite.usesLeft === 0) throw new Refused('invite-used-up', 'the invite is used up');
      return [
        inviteUsed({ inviteId, userId }),
        memberAdded({ userId, username, role: invite.role }),
      ];
    },
    'workspace.revoke-invite': ({ inviteId, by }, state, { id }) => {
      assertAdmin(state, by, id);
      return own(state.invites, inviteId) === undefined
        ? []
        : inviteRevoked({ inviteId, revokedBy: by });
    },
  },
});

function assertMember(state: WorkspaceState, userId: string, id: string): Member {
  if (state.name === undefined) {
    throw new Refused('workspace-unknown', `there is no workspace ${id}`);
  }
  const member = own(state.members, userId);
  if (member === undefined) throw new Refused('not-a-member', `${userId} does not belong to ${id}`);
  return member;
}

function assertAdmin(state: WorkspaceState, userId: string, id: string): void {
  if (assertMember(state, userId, id).role === 'admin') return;
  throw new Refused('not-an-admin', `only an admin of ${id} may do that`);
}

function withRole(
  state: WorkspaceState,
  userId: string,
  role: Role,
): readonly ReturnType<typeof memberRoleChanged>[] {
  const member = own(state.members, userId);
  if (member === undefined) throw new Refused('member-unknown', `${userId} is no member`);
  if (member.role === role) return [];
  if (role !== 'admin') assertAdminLeft(state, userId);
  return [memberRoleChanged({ userId, username: member.username, role })];
}

/** Without the one who goes. */
function assertAdminLeft({ members }: WorkspaceState, userId: string): void {
  const isLeft = Object.entries(members).some(
    ([each, { role }]) => each !== userId && role === 'admin',
  );
  if (!isLeft) throw new Refused('last-admin', 'a workspace must keep an admin');
}

function without<Value>(
  all: Readonly<Record<string, Value>>,
  name: string,
): Readonly<Record<string, Value>> {
  const { [name]: _gone, ...left } = all;
  return left;
}
