// Workspaces: who belongs to them, and who may come.

import { Type } from 'millrace/contracts';
import type { Route, WebContext } from 'millrace/platform';
import { collabLimits } from '../fields.ts';
import {
  newInviteToken,
  parseInviteToken,
  workspaceProjection,
  type WorkspaceDocument,
} from '../workspace.ts';
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
import { workspaceRole, type Reach } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import {
  flowHeader,
  idText,
  repeatableShown,
  type CommandOutcome,
  type MakeEndpoint,
} from './endpoints.ts';
import { notFound } from './collab-errors.ts';
import {
  pageAnswer,
  pageLimits,
  pageOfList,
  pageQuery,
  pageSchema,
  inviteSchema,
  memberSchema,
  newInviteSchema,
  roleSchema,
  workspaceSchema,
} from './collab-schemas.ts';

const tag = 'collab: workspaces';
const params = Type.Object({ w: idText });
const memberParams = Type.Object({ w: idText, userId: idText });
const listQuery = Type.Object(pageQuery);
const dayMs = 86_400_000;

const inviteDefaults = { expiresInSeconds: 7 * 86_400, maxUses: 1 } as const;

export function workspaceRoutes(
  endpoint: MakeEndpoint,
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
  const settled = ({ position }: CommandOutcome): Promise<void> =>
    documents.settled(workspaceProjection, position);
  const memberOf = async (tenant: string, workspaceId: string, userId: string) => {
    const found = await documents.fresh(workspaceProjection, tenant, workspaceId);
    return found?.members.find((each) => each.userId === userId);
  };

  return [
    endpoint('createWorkspace', {
      summary: 'Makes a workspace; whoever makes it is its admin',
      tag,
      body: Type.Object({ name: Type.String({ maxLength: 200 }) }, { additionalProperties: false }),
      headersShown: repeatableShown,
      answers: { 201: { description: 'The workspace', schema: workspaceSchema } },
      async handle({ body }, { me, send, newId }) {
        const { id, key } = newId('create-workspace');
        const { userId, username } = me;
        const command = createWorkspace({ name: body.name, createdBy: userId, username });
        const outcome = await send({ id, command, key });
        await settled(outcome);
        const workspace = await reach.workspace(me, id, 'workspace.see');
        return { status: 201, headers: flowHeader(outcome), body: shown(workspace, userId) };
      },
    }),
    endpoint('listWorkspaces', {
      summary: 'The workspaces that one belongs to',
      tag,
      query: listQuery,
      answers: { 200: { description: 'A page', schema: pageSchema(workspaceSchema) } },
      async handle({ query: { limit = pageLimits.default, cursor } }, { me }) {
        const page = await documents.workspaces.byRange(me.tenant, 'member', {
          group: me.userId,
          direction: 'descending',
          limit,
          cursor,
        });
        return pageAnswer(page, (document) => shown(document, me.userId));
      },
    }),
    endpoint('getWorkspace', {
      summary: 'A workspace',
      tag,
      params,
      answers: { 200: { description: 'It', schema: workspaceSchema } },
      async handle({ params: { w } }, { me, rule }) {
        return { body: shown(await reach.workspace(me, w, rule), me.userId) };
      },
    }),
    endpoint('listMembers', {
      summary: 'Who belongs to a workspace, and as what',
      tag,
      params,
      query: listQuery,
      answers: { 200: { description: 'A page', schema: pageSchema(memberSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        const { members } = await reach.workspace(me, w, rule);
        return pageOfList(members, query, ({ userId }) => userId);
      },
    }),
    endpoint('addMember', {
      summary: 'Takes a user of the tenant into a workspace',
      tag,
      params,
      body: Type.Object(
        { username: idText, role: Type.Optional(roleSchema) },
        { additionalProperties: false },
      ),
      answers: { 201: { description: 'The member', schema: memberSchema } },
      async handle({ params: { w }, body }, { me, rule, send }) {
        await reach.workspace(me, w, rule);
        const name = body.username.toLowerCase();
        const found = await documents.again(userProjection, () =>
          documents.users.byIndex(me.tenant, 'username', name),
        );
        if (found === undefined) throw notFound('user');
        const { userId, username } = found.document;
        const { role = 'member' } = body;
        const outcome = await send({
          id: w,
          command: addMember({ userId, username, role, by: me.userId }),
        });
        await settled(outcome);
        return {
          status: 201,
          headers: flowHeader(outcome),
          body: await memberOf(me.tenant, w, userId),
        };
      },
    }),
    endpoint('changeMemberRole', {
      summary: 'Makes a member an admin, or an admin a member',
      tag,
      params: memberParams,
      body: Type.Object({ role: roleSchema }, { additionalProperties: false }),
      answers: { 200: { description: 'The member', schema: memberSchema } },
      async handle({ params: { w, userId }, body }, { me, rule, send }) {
        await reach.workspace(me, w, rule);
        const command = changeMemberRole({ userId, role: body.role, by: me.userId });
        const outcome = await send({ id: w, command });
        await settled(outcome);
        return { headers: flowHeader(outcome), body: await memberOf(me.tenant, w, userId) };
      },
    }),
    endpoint('removeMember', {
      summary: 'Removes a member; of oneself: leaves',
      tag,
      params: memberParams,
      answers: {
        204: { description: 'Done' },
        409: { description: 'A workspace keeps its last admin' },
      },
      async handle({ params: { w, userId } }, { me, rule, send }) {
        const workspace = await reach.workspace(
          me,
          w,
          userId === me.userId ? 'workspace.leave' : rule,
        );
        if (workspaceRole(workspace, userId) === 'stranger') throw notFound('member');
        const outcome = await send({ id: w, command: removeMember({ userId, by: me.userId }) });
        await settled(outcome);
        return { status: 204, headers: flowHeader(outcome) };
      },
    }),
    endpoint('listInvites', {
      summary: 'Invites, without their tokens',
      tag,
      params,
      query: listQuery,
      answers: { 200: { description: 'A page', schema: pageSchema(inviteSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        const { invites } = await reach.workspace(me, w, rule);
        return pageOfList(invites, query, ({ inviteId }) => inviteId);
      },
    }),
    endpoint('createInvite', {
      summary: 'Makes an invite; its token is in this answer and nowhere else',
      tag,
      params,
      body: Type.Object(
        {
          role: Type.Optional(roleSchema),
          expiresInSeconds: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: (365 * dayMs) / 1_000,
              description: `Default: ${inviteDefaults.expiresInSeconds}, a week.`,
            }),
          ),
          maxUses: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: collabLimits.inviteUsesMax,
              description: `Default: ${inviteDefaults.maxUses}.`,
            }),
          ),
        },
        { additionalProperties: false },
      ),
      answers: { 201: { description: 'The invite', schema: newInviteSchema } },
      async handle({ params: { w }, body }, { me, rule, send, newId }) {
        await reach.workspace(me, w, rule);
        // Never twice the same: nobody knows the token of the first one any more.
        const { token, tokenHash, inviteId } = newInviteToken({
          workspaceId: w,
          inviteId: newId('create-invite').id,
        });
        const { role = 'member', maxUses = inviteDefaults.maxUses } = body;
        const { expiresInSeconds = inviteDefaults.expiresInSeconds } = body;
        const expiresAt = new Date(clock.now() + expiresInSeconds * 1_000).toISOString();
        const invite = { inviteId, role, maxUses, expiresAt };
        const command = createInvite({ ...invite, tokenHash, by: me.userId });
        const outcome = await send({ id: w, command });
        await settled(outcome);
        return { status: 201, headers: flowHeader(outcome), body: { ...invite, token } };
      },
    }),
    endpoint('revokeInvite', {
      summary: 'Ends an invite',
      tag,
      params: Type.Object({ w: idText, inviteId: idText }),
      answers: { 204: { description: 'Done' } },
      async handle({ params: { w, inviteId } }, { me, rule, send }) {
        const { invites } = await reach.workspace(me, w, rule);
        if (!invites.some((each) => each.inviteId === inviteId)) throw notFound('invite');
        const outcome = await send({ id: w, command: revokeInvite({ inviteId, by: me.userId }) });
        await settled(outcome);
        return { status: 204, headers: flowHeader(outcome) };
      },
    }),
    endpoint('useInvite', {
      summary: 'Comes into a workspace by an invite',
      tag,
      params: Type.Object({ token: Type.String({ maxLength: 300 }) }),
      answers: {
        200: { description: 'The workspace', schema: workspaceSchema },
        409: { description: 'It has ended, or is used up' },
      },
      async handle({ params: { token } }, { me, send }) {
        const invite = parseInviteToken(token);
        if (invite === undefined) throw notFound('invite');
        const { workspaceId: id, inviteId, tokenHash } = invite;
        const { userId, username } = me;
        const command = useInvite({ inviteId, tokenHash, userId, username });
        const outcome = await send({ id, command });
        await settled(outcome);
        const workspace = await reach.workspace(me, id, 'workspace.see');
        return { headers: flowHeader(outcome), body: shown(workspace, userId) };
      },
    }),
  ];
}

/** Members and invites have lists of their own. */
function shown(workspace: WorkspaceDocument, userId: string): object {
  const { members, invites: _invites, ...rest } = workspace;
  return { ...rest, role: workspaceRole(workspace, userId), memberCount: members.length };
}
