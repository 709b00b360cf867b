// Events and commands of a workspace.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { collabLimits, name, role, streamId, timestamp, username } from './fields.ts';

const member = z.object({ userId: streamId, username, role });
const userId = z.object({ userId: streamId });
const inviteId = z.object({ inviteId: streamId });
/** The user who sends the command. */
const by = z.object({ by: streamId });
const invite = inviteId.extend({
  /** SHA-256 of the secret: the token is shown once and never stored. */
  tokenHash: z.string().regex(/^[0-9a-f]{64}$/),
  expiresAt: timestamp,
  maxUses: z.int().min(1).max(collabLimits.inviteUsesMax),
  role,
});

export const workspaceCreated = defineEvent(
  'workspace.created.v1',
  z.object({ name, createdBy: streamId }),
);
export const memberAdded = defineEvent('workspace.member-added.v1', member);
export const memberRemoved = defineEvent('workspace.member-removed.v1', member);
export const memberRoleChanged = defineEvent('workspace.member-role-changed.v1', member);
export const inviteCreated = defineEvent(
  'workspace.invite-created.v1',
  invite.extend({ createdBy: streamId }),
);
export const inviteUsed = defineEvent(
  'workspace.invite-used.v1',
  inviteId.extend({ userId: streamId }),
);
export const inviteRevoked = defineEvent(
  'workspace.invite-revoked.v1',
  inviteId.extend({ revokedBy: streamId }),
);

export const createWorkspace = defineCommand(
  'workspace.create',
  z.object({ name, createdBy: streamId, username }),
);
export const addMember = defineCommand('workspace.add-member', member.extend(by.shape));
/** Members remove themselves to leave. */
export const removeMember = defineCommand('workspace.remove-member', userId.extend(by.shape));
export const changeMemberRole = defineCommand(
  'workspace.change-member-role',
  userId.extend({ role }).extend(by.shape),
);
export const createInvite = defineCommand('workspace.create-invite', invite.extend(by.shape));
export const useInvite = defineCommand(
  'workspace.use-invite',
  inviteId.extend({ tokenHash: invite.shape.tokenHash, userId: streamId, username }),
);
export const revokeInvite = defineCommand('workspace.revoke-invite', inviteId.extend(by.shape));
