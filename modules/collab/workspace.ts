// A workspace: its members and their roles, its invites, and its read model.

import { defineAggregate, Refused } from 'millrace/aggregates';
import { type Role, own } from './fields.ts';
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
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { createHash, randomBytes } from 'node:crypto';

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

export interface MemberDocument {
  readonly userId: string;
  readonly username: string;
  readonly role: Role;
  readonly joinedAt: string;
}

export interface InviteDocument {
  readonly inviteId: string;
  readonly role: Role;
  readonly expiresAt: string;
  readonly maxUses: number;
  readonly uses: number;
  readonly isRevoked: boolean;
  readonly createdBy: string;
}

export interface WorkspaceDocument {
  readonly workspaceId: string;
  readonly name: string;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly members: readonly MemberDocument[];
  readonly invites: readonly InviteDocument[];
}

type Created = ProjectedEvent<ReturnType<typeof workspaceCreated.parse>>;
type MemberEvent = ProjectedEvent<ReturnType<typeof memberAdded.parse>>;
type Invited = ProjectedEvent<ReturnType<typeof inviteCreated.parse>>;
type Used = ProjectedEvent<ReturnType<typeof inviteUsed.parse>>;
type Revoked = ProjectedEvent<ReturnType<typeof inviteRevoked.parse>>;

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
    'workspace.created.v1': (_before, { payload, aggregate, occurredAt }: Created) => ({
      workspaceId: aggregate.id,
      name: payload.name,
      createdBy: payload.createdBy,
      createdAt: occurredAt,
      members: [],
      invites: [],
    }),
    'workspace.member-added.v1': (before, { payload, occurredAt }: MemberEvent) =>
      before === null
        ? null
        : { ...before, members: [...before.members, { ...payload, joinedAt: occurredAt }] },
    'workspace.member-removed.v1': (before, { payload: { userId } }: MemberEvent) =>
      before === null
        ? null
        : { ...before, members: before.members.filter((each) => each.userId !== userId) },
    'workspace.member-role-changed.v1': (before, { payload: { userId, role } }: MemberEvent) =>
      before === null
        ? null
        : {
            ...before,
            members: before.members.map((each) =>
              each.userId === userId ? { ...each, role } : each,
            ),
          },
    'workspace.invite-created.v1': (before, { payload }: Invited) => {
      if (before === null) return null;
      const { tokenHash: _secret, ...shown } = payload;
      return { ...before, invites: [...before.invites, { ...shown, uses: 0, isRevoked: false }] };
    },
    'workspace.invite-used.v1': (before, { payload: { inviteId } }: Used) =>
      withInvite(before, inviteId, (each) => ({ ...each, uses: each.uses + 1 })),
    'workspace.invite-revoked.v1': (before, { payload: { inviteId } }: Revoked) =>
      withInvite(before, inviteId, (each) => ({ ...each, isRevoked: true })),
  },
});

function withInvite(
  before: WorkspaceDocument | null,
  inviteId: string,
  change: (invite: InviteDocument) => InviteDocument,
): WorkspaceDocument | null {
  if (before === null) return null;
  const invites = before.invites.map((each) => (each.inviteId === inviteId ? change(each) : each));
  return { ...before, invites };
}

export interface InviteToken {
  readonly workspaceId: string;
  readonly inviteId: string;
  readonly tokenHash: string;
}

/** The token is shown once, by whoever made it. */
export function newInviteToken(
  place: Pick<InviteToken, 'workspaceId' | 'inviteId'>,
  secret: string = randomBytes(32).toString('base64url'),
): InviteToken & { readonly token: string } {
  const { workspaceId, inviteId } = place;
  return {
    ...place,
    tokenHash: hashOf(secret),
    // No id holds the sign between them.
    token: `${workspaceId}~${inviteId}~${secret}`,
  };
}

/** Undefined: it is no token of ours. */
export function parseInviteToken(token: string): InviteToken | undefined {
  const [, workspaceId, inviteId, secret] =
    /^([A-Za-z0-9._-]{1,64})~([A-Za-z0-9._-]{1,64})~([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (workspaceId === undefined || inviteId === undefined || secret === undefined) return undefined;
  return { workspaceId, inviteId, tokenHash: hashOf(secret) };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
