// A workspace: its members and their roles, its invites, and its read model.

import { createHash, randomBytes } from 'node:crypto';
import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { InviteDocument, MemberDocument } from './documents.ts';
import { own, type Role } from './fields.ts';
import { update, type Projected } from './projected.ts';
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

interface Invite {
  readonly tokenHash: string;
  readonly expiresAtMs: number;
  readonly usesLeft: number;
  readonly role: Role;
}

export interface WorkspaceState {
  /** Undefined: the workspace does not exist. */
  readonly name: string | undefined;
  readonly members: Readonly<Record<string, Member>>;
  /** Invites by id, without revoked ones. */
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
  // Version 2 added `sinceMs` of members.
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
      const used = { ...invite, usesLeft: invite.usesLeft - 1 };
      return { ...state, invites: { ...state.invites, [inviteId]: used } };
    },
    'workspace.invite-revoked.v1': (state, { inviteId }) => ({
      ...state,
      invites: without(state.invites, inviteId),
    }),
  },
  decide: {
    'workspace.create': ({ name, createdBy, username }, state, { id }) => {
      if (state.name !== undefined)
        throw new CommandRejected('workspace-exists', `Workspace ${id} already exists.`);
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
      assertOtherAdmin(state, userId);
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
        throw new CommandRejected('invite-exists', `Invite ${invite.inviteId} already exists.`);
      if (Date.parse(invite.expiresAt) <= nowMs) {
        throw new CommandRejected('invite-expired', '`expiresAt` must be in the future.');
      }
      return inviteCreated({ ...invite, createdBy: by });
    },
    'workspace.use-invite': ({ inviteId, tokenHash, userId, username }, state, { nowMs }) => {
      const invite = own(state.invites, inviteId);
      // A wrong secret gets the same response as an unknown invite.
      if (invite === undefined || invite.tokenHash !== tokenHash) {
        throw new CommandRejected(
          'invite-unknown',
          'The invite is unknown or was revoked. Ask an admin for a new one.',
        );
      }
      if (own(state.members, userId) !== undefined) return [];
      if (invite.expiresAtMs <= nowMs)
        throw new CommandRejected('invite-expired', 'The invite has expired.');
      if (invite.usesLeft === 0)
        throw new CommandRejected('invite-used-up', 'The invite has no uses left.');
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
    throw new CommandRejected('workspace-unknown', `Unknown workspace '${id}'.`);
  }
  const member = own(state.members, userId);
  if (member === undefined)
    throw new CommandRejected('not-a-member', `${userId} is not a member of workspace ${id}.`);
  return member;
}

function assertAdmin(state: WorkspaceState, userId: string, id: string): void {
  if (assertMember(state, userId, id).role === 'admin') return;
  throw new CommandRejected(
    'not-an-admin',
    `Only an admin of workspace ${id} is allowed to do this.`,
  );
}

function withRole(
  state: WorkspaceState,
  userId: string,
  role: Role,
): readonly ReturnType<typeof memberRoleChanged>[] {
  const member = own(state.members, userId);
  if (member === undefined)
    throw new CommandRejected('member-unknown', `${userId} is not a member.`);
  if (member.role === role) return [];
  if (role !== 'admin') assertOtherAdmin(state, userId);
  return [memberRoleChanged({ userId, username: member.username, role })];
}

/** Rejects a change that would leave the workspace without an admin. */
function assertOtherAdmin({ members }: WorkspaceState, userId: string): void {
  const hasOtherAdmin = Object.entries(members).some(
    ([each, { role }]) => each !== userId && role === 'admin',
  );
  if (!hasOtherAdmin)
    throw new CommandRejected('last-admin', 'A workspace needs at least one admin.');
}

function without<Value>(
  all: Readonly<Record<string, Value>>,
  name: string,
): Readonly<Record<string, Value>> {
  const { [name]: _gone, ...left } = all;
  return left;
}

export interface WorkspaceDocument {
  readonly workspaceId: string;
  readonly name: string;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly members: readonly MemberDocument[];
  readonly invites: readonly InviteDocument[];
}

export const workspaceProjection = projection({
  name: 'sub:collab:workspace-projection:v1',
  readModel: readModel<WorkspaceDocument>({
    bc: 'collab',
    aggregate: 'workspace',
    version: 1,
    groups: {
      member: ({ members, createdAt }) =>
        Object.fromEntries(members.map(({ userId }) => [userId, Date.parse(createdAt)])),
    },
  }),
  on: {
    'workspace.created.v1': (
      _before,
      { payload, aggregate, occurredAt }: Projected<typeof workspaceCreated>,
    ) => ({
      workspaceId: aggregate.id,
      name: payload.name,
      createdBy: payload.createdBy,
      createdAt: occurredAt,
      members: [],
      invites: [],
    }),
    'workspace.member-added.v1': changeMembers((members, { payload, occurredAt }) => [
      ...members,
      { ...payload, joinedAt: occurredAt },
    ]),
    'workspace.member-removed.v1': changeMembers((members, { payload: { userId } }) =>
      members.filter((member) => member.userId !== userId),
    ),
    'workspace.member-role-changed.v1': changeMembers((members, { payload: { userId, role } }) =>
      members.map((member) => (member.userId === userId ? { ...member, role } : member)),
    ),
    'workspace.invite-created.v1': update<WorkspaceDocument, Projected<typeof inviteCreated>>(
      (document, { payload: { tokenHash: _secret, ...invite } }) => ({
        ...document,
        invites: [...document.invites, { ...invite, uses: 0, isRevoked: false }],
      }),
    ),
    'workspace.invite-used.v1': changeInvite((invite) => ({
      ...invite,
      uses: invite.uses + 1,
    })),
    'workspace.invite-revoked.v1': changeInvite((invite) => ({
      ...invite,
      isRevoked: true,
    })),
  },
});

function changeMembers(
  change: (
    members: readonly MemberDocument[],
    event: Projected<typeof memberAdded>,
  ) => readonly MemberDocument[],
) {
  return update<WorkspaceDocument, Projected<typeof memberAdded>>((document, event) => ({
    ...document,
    members: change(document.members, event),
  }));
}

function changeInvite(change: (invite: InviteDocument) => InviteDocument) {
  type InviteEvent = ProjectedEvent<{ readonly inviteId: string }>;
  return update<WorkspaceDocument, InviteEvent>((document, { payload: { inviteId } }) => ({
    ...document,
    invites: document.invites.map((invite) =>
      invite.inviteId === inviteId ? change(invite) : invite,
    ),
  }));
}

/** The address and the hashed secret of an invite; the secret itself is only in the token. */
export interface InviteToken {
  readonly workspaceId: string;
  readonly inviteId: string;
  readonly tokenHash: string;
}

/** The token is returned once, to the user who creates the invite. */
export function newInviteToken(
  ids: Pick<InviteToken, 'workspaceId' | 'inviteId'>,
  secret: string = randomBytes(32).toString('base64url'),
): InviteToken & { readonly token: string } {
  const { workspaceId, inviteId } = ids;
  return {
    ...ids,
    tokenHash: hashOf(secret),
    // Ids never contain `~`.
    token: `${workspaceId}~${inviteId}~${secret}`,
  };
}

/** Undefined: not a well-formed invite token. */
export function parseInviteToken(token: string): InviteToken | undefined {
  const [, workspaceId, inviteId, secret] =
    /^([A-Za-z0-9._-]{1,64})~([A-Za-z0-9._-]{1,64})~([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (workspaceId === undefined || inviteId === undefined || secret === undefined) return undefined;
  return { workspaceId, inviteId, tokenHash: hashOf(secret) };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
