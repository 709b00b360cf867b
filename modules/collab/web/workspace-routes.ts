// Routes of workspaces, their members and their invites.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import {
  inviteSchema,
  memberSchema,
  newInviteSchema,
  roleSchema,
  workspaceSchema,
  type MemberDocument,
} from '../documents.ts';
import { collabLimits } from '../fields.ts';
import { pageResponse, pageLimits, pageOfList, pageQuery, pageSchema } from '../pages.ts';
import { userProjection } from '../user.ts';
import {
  addMember,
  changeMemberRole,
  createInvite,
  createWorkspace,
  removeMember,
  revokeInvite,
  useInvite,
} from '../workspace-events.ts';
import {
  newInviteToken,
  parseInviteToken,
  workspaceProjection,
  type WorkspaceDocument,
} from '../workspace.ts';
import { workspaceRole, type Reach } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { notFound } from './collab-errors.ts';
import { bodyOf, idText, repeatableShown, type EndpointMaker } from './endpoints.ts';

const listQuery = Type.Object(pageQuery);
const visibleIn = workspaceProjection;

const inviteDefaults = { expiresInSeconds: 7 * 86_400, maxUses: 1 } as const;
const inviteSecondsMax = 365 * 86_400;

export function workspaceRoutes(
  endpointsOf: EndpointMaker,
  {
    reach,
    documents,
    clock,
  }: {
    readonly reach: Reach;
    readonly documents: CollabDocuments;
    readonly clock: WebContext['clock'];
  },
): readonly Route[] {
  const endpoint = endpointsOf('collab: workspaces');
  const memberOf = async (
    tenant: string,
    workspaceId: string,
    userId: string,
  ): Promise<MemberDocument | undefined> => {
    const workspace = await documents.fresh(workspaceProjection, tenant, workspaceId);
    return workspace?.members.find((member) => member.userId === userId);
  };

  return [
    endpoint('createWorkspace', {
      summary: 'Create a workspace; the creator is its admin',
      body: Type.Object({ name: Type.String({ maxLength: 200 }) }, { additionalProperties: false }),
      headersShown: repeatableShown,
      responses: { 201: { description: 'The workspace', schema: workspaceSchema } },
      async handle({ body: { name } }, { me, send, newId }) {
        const { id, key } = newId('create-workspace');
        const { userId, username } = me;
        const command = createWorkspace({ name, createdBy: userId, username });
        await send({ id, command, key, visibleIn });
        const workspace = await reach.workspace(me, id, 'workspace.see');
        return { status: 201, body: summaryOf(workspace, userId) };
      },
    }),
    endpoint('listWorkspaces', {
      summary: 'List the workspaces of the caller',
      query: listQuery,
      responses: { 200: { description: 'Newest first', schema: pageSchema(workspaceSchema) } },
      async handle({ query: { limit = pageLimits.default, cursor }, memory }, { me }) {
        const page = await memory.page({ limit, cursor }, (part) =>
          documents.workspaces.byRange(me.tenant, 'member', {
            group: me.userId,
            direction: 'descending',
            ...part,
          }),
        );
        return pageResponse(page, (workspace) => summaryOf(workspace, me.userId));
      },
    }),
    endpoint('getWorkspace', {
      summary: 'Get a workspace',
      responses: { 200: { description: 'The workspace', schema: workspaceSchema } },
      async handle({ params: { w } }, { me, rule }) {
        return { body: summaryOf(await reach.workspace(me, w, rule), me.userId) };
      },
    }),
    endpoint('listMembers', {
      summary: 'List the members of a workspace',
      query: listQuery,
      responses: { 200: { description: 'Members', schema: pageSchema(memberSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        const { members } = await reach.workspace(me, w, rule);
        return pageOfList(members, query, ({ userId }) => userId);
      },
    }),
    endpoint('addMember', {
      summary: 'Add a user of the tenant to a workspace',
      body: bodyOf({ username: idText, role: Type.Optional(roleSchema) }),
      responses: { 201: { description: 'The member', schema: memberSchema } },
      async handle({ params: { w }, body }, { me, rule, send }) {
        await reach.workspace(me, w, rule);
        const name = body.username.toLowerCase();
        const found = await documents.again(userProjection, () =>
          documents.users.byIndex(me.tenant, 'username', name),
        );
        if (found === undefined) throw notFound('user');
        const { userId, username } = found.document;
        const { role = 'member' } = body;
        const command = addMember({ userId, username, role, by: me.userId });
        await send({ id: w, command, visibleIn });
        return { status: 201, body: await memberOf(me.tenant, w, userId) };
      },
    }),
    endpoint('changeMemberRole', {
      summary: 'Change the role of a member',
      body: bodyOf({ role: roleSchema }),
      responses: { 200: { description: 'The member', schema: memberSchema } },
      async handle({ params: { w, userId }, body: { role } }, { me, rule, send }) {
        await reach.workspace(me, w, rule);
        const command = changeMemberRole({ userId, role, by: me.userId });
        await send({ id: w, command, visibleIn });
        return { body: await memberOf(me.tenant, w, userId) };
      },
    }),
    endpoint('removeMember', {
      summary: 'Remove a member; members leave by removing themselves',
      responses: {
        204: { description: 'Removed' },
        409: { description: 'The member is the last admin' },
      },
      async handle({ params: { w, userId } }, { me, rule, send }) {
        const action = userId === me.userId ? 'workspace.leave' : rule;
        const workspace = await reach.workspace(me, w, action);
        if (workspaceRole(workspace, userId) === 'stranger') throw notFound('member');
        await send({ id: w, command: removeMember({ userId, by: me.userId }), visibleIn });
        return { status: 204 };
      },
    }),
    endpoint('listInvites', {
      summary: 'List the invites of a workspace, without their tokens',
      query: listQuery,
      responses: { 200: { description: 'Invites', schema: pageSchema(inviteSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        const { invites } = await reach.workspace(me, w, rule);
        return pageOfList(invites, query, ({ inviteId }) => inviteId);
      },
    }),
    endpoint('createInvite', {
      summary: 'Create an invite; only this response contains its token',
      body: bodyOf({
        role: Type.Optional(roleSchema),
        expiresInSeconds: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: inviteSecondsMax,
            description: `Default: ${inviteDefaults.expiresInSeconds}, one week.`,
          }),
        ),
        maxUses: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: collabLimits.inviteUsesMax,
            description: `Default: ${inviteDefaults.maxUses}.`,
          }),
        ),
      }),
      responses: { 201: { description: 'The invite', schema: newInviteSchema } },
      async handle({ params: { w }, body }, { me, rule, send, newId }) {
        await reach.workspace(me, w, rule);
        // Sent without an idempotency key: the token of the first response is not stored and cannot be repeated.
        const { token, tokenHash, inviteId } = newInviteToken({
          workspaceId: w,
          inviteId: newId('create-invite').id,
        });
        const { role = 'member', maxUses = inviteDefaults.maxUses } = body;
        const { expiresInSeconds = inviteDefaults.expiresInSeconds } = body;
        const expiresAt = new Date(clock.now() + expiresInSeconds * 1_000).toISOString();
        const invite = { inviteId, role, maxUses, expiresAt };
        const command = createInvite({ ...invite, tokenHash, by: me.userId });
        await send({ id: w, command, visibleIn });
        return { status: 201, body: { ...invite, token } };
      },
    }),
    endpoint('revokeInvite', {
      summary: 'Revoke an invite',
      responses: { 204: { description: 'Revoked' } },
      async handle({ params: { w, inviteId } }, { me, rule, send }) {
        const { invites } = await reach.workspace(me, w, rule);
        if (!invites.some((invite) => invite.inviteId === inviteId)) throw notFound('invite');
        await send({ id: w, command: revokeInvite({ inviteId, by: me.userId }), visibleIn });
        return { status: 204 };
      },
    }),
    endpoint('useInvite', {
      summary: 'Join a workspace with an invite',
      params: Type.Object({ token: Type.String({ maxLength: 300 }) }),
      responses: {
        200: { description: 'The workspace', schema: workspaceSchema },
        409: { description: 'The invite has expired or has no uses left' },
      },
      async handle({ params: { token } }, { me, send }) {
        const invite = parseInviteToken(token);
        if (invite === undefined) throw notFound('invite');
        const { workspaceId: id, inviteId, tokenHash } = invite;
        const { userId, username } = me;
        await send({
          id,
          command: useInvite({ inviteId, tokenHash, userId, username }),
          visibleIn,
        });
        return { body: summaryOf(await reach.workspace(me, id, 'workspace.see'), userId) };
      },
    }),
  ];
}

/** Members and invites have separate lists. */
function summaryOf(workspace: WorkspaceDocument, userId: string): object {
  const { members, invites: _invites, ...rest } = workspace;
  return { ...rest, role: workspaceRole(workspace, userId), memberCount: members.length };
}
