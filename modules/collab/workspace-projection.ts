// `app:{core}:collab:workspace:v1:<workspaceId>`: a workspace with its members and invites.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { Role } from './fields.ts';
import type {
  inviteCreated,
  inviteRevoked,
  inviteUsed,
  memberAdded,
  workspaceCreated,
} from './workspace-events.ts';

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
type Member = ProjectedEvent<ReturnType<typeof memberAdded.parse>>;
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
    'workspace.member-added.v1': (before, { payload, occurredAt }: Member) =>
      before === null
        ? null
        : { ...before, members: [...before.members, { ...payload, joinedAt: occurredAt }] },
    'workspace.member-removed.v1': (before, { payload: { userId } }: Member) =>
      before === null
        ? null
        : { ...before, members: before.members.filter((each) => each.userId !== userId) },
    'workspace.member-role-changed.v1': (before, { payload: { userId, role } }: Member) =>
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
