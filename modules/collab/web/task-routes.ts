// Tasks as lists and as a board. They are changed by tags in their chats, and by nothing here.

import { Type } from 'millrace/contracts';
import type { Route } from 'millrace/platform';
import { dueMs } from '../tasks/due-date.ts';
import { unwatchTask, watchTask } from '../tasks/task-events.ts';
import { taskProjection, findTasks, taskBoard } from '../tasks/task-read-models.ts';
import type { WorkspaceDocument } from '../workspace.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { flowHeader, idText, type Asking, type MakeEndpoint } from './endpoints.ts';
import { invalid } from './collab-errors.ts';
import {
  pageAnswer,
  pageLimits,
  pageQuery,
  pageSchema,
  boardSchema,
  prioritySchema,
  statusSchema,
  taskSchema,
  taskTypeSchema,
} from './collab-schemas.ts';
import type { Reach } from './access.ts';

const tag = 'collab: tasks';
const params = Type.Object({ id: idText });
const dateText = Type.String({
  maxLength: 40,
  description: 'ISO 8601: a date, or a date and a time.',
});

export function taskRoutes(
  endpoint: MakeEndpoint,
  { reach, documents }: { readonly reach: Reach; readonly documents: CollabDocuments },
): readonly Route[] {
  const watching = async (
    id: string,
    isWatching: boolean,
    { me, rule, send }: Pick<Asking<'unwatchTask' | 'watchTask'>, 'me' | 'rule' | 'send'>,
  ) => {
    await reach.task(me, id, rule);
    const { userId } = me;
    const command = isWatching ? watchTask({ userId }) : unwatchTask({ userId });
    const outcome = await send({ id, command });
    await documents.settled(taskProjection, outcome.position);
    return { status: 204, headers: flowHeader(outcome) };
  };

  return [
    endpoint('listTasks', {
      summary: 'Tasks of a workspace that one may see',
      tag,
      params: Type.Object({ w: idText }),
      query: Type.Object({
        ...pageQuery,
        type: Type.Optional(taskTypeSchema),
        status: Type.Optional(statusSchema),
        assignee: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 65,
            description: 'An id, `@username`, `me`, or `none`.',
          }),
        ),
        priority: Type.Optional(prioritySchema),
        due: Type.Optional(
          Type.String({ maxLength: 10, description: 'On this day (UTC): YYYY-MM-DD.' }),
        ),
        dueFrom: Type.Optional(dateText),
        dueTo: Type.Optional(dateText),
        search: Type.Optional(
          Type.String({ minLength: 1, maxLength: 200, description: 'Words of the title.' }),
        ),
        sort: Type.Optional(
          Type.Enum(['created', 'updated', 'due', 'priority'], {
            description: 'Default: created. By `due`, only tasks that have one.',
          }),
        ),
        order: Type.Optional(Type.Enum(['asc', 'desc'])),
      }),
      answers: { 200: { description: 'A page', schema: pageSchema(taskSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        const workspace = await reach.workspace(me, w, rule);
        const { limit = pageLimits.default, cursor, sort, order } = query;
        const { type, status, priority, search } = query;
        const page = await findTasks(documents, {
          tenant: me.tenant,
          userId: me.userId,
          workspaceId: w,
          limit,
          cursor,
          filters: {
            type,
            status,
            priority,
            search,
            assignee: assigneeOf(query.assignee, workspace, me.userId),
            ...dueBounds(query),
          },
          ...(sort === undefined ? {} : { sort }),
          ...(order === undefined
            ? {}
            : { direction: order === 'asc' ? 'ascending' : 'descending' }),
        });
        return pageAnswer(page);
      },
    }),
    endpoint('getBoard', {
      summary: 'Tasks by their status, with how many there are',
      tag,
      params: Type.Object({ w: idText }),
      query: Type.Object({
        type: Type.Optional(taskTypeSchema),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: pageLimits.max,
            description: `Tasks of each column; GET …/tasks has the rest. Default: ${pageLimits.default}.`,
          }),
        ),
      }),
      answers: { 200: { description: 'The board', schema: boardSchema } },
      async handle({ params: { w }, query: { type, limit = pageLimits.default } }, { me, rule }) {
        await reach.workspace(me, w, rule);
        const { tenant, userId } = me;
        const asked = { tenant, userId, workspaceId: w, limit, type };
        return { body: { columns: await taskBoard(documents, asked) } };
      },
    }),
    endpoint('getTask', {
      summary: 'A task; it has the id of its chat',
      tag,
      params,
      answers: { 200: { description: 'It', schema: taskSchema } },
      handle: async ({ params: { id } }, { me, rule }) => ({
        body: await reach.task(me, id, rule),
      }),
    }),
    endpoint('watchTask', {
      summary: 'Wants to be told what becomes of a task',
      tag,
      params,
      answers: { 204: { description: 'Done' } },
      handle: ({ params: { id } }, asking) => watching(id, true, asking),
    }),
    endpoint('unwatchTask', {
      summary: 'Does not want to be told any more',
      tag,
      params,
      answers: { 204: { description: 'Done' } },
      handle: ({ params: { id } }, asking) => watching(id, false, asking),
    }),
  ];
}

/** Somebody who is not in the workspace has no tasks there. */
function assigneeOf(
  asked: string | undefined,
  { members }: WorkspaceDocument,
  userId: string,
): string | null | undefined {
  if (asked === 'none') return null;
  if (asked === 'me') return userId;
  if (asked?.startsWith('@') !== true) return asked;
  const name = asked.slice(1).toLowerCase();
  return members.find(({ username }) => username.toLowerCase() === name)?.userId ?? asked;
}

function dueBounds({
  due,
  dueFrom,
  dueTo,
}: {
  readonly due?: string;
  readonly dueFrom?: string;
  readonly dueTo?: string;
}): { readonly dueFrom?: string; readonly dueTo?: string } {
  for (const [field, value] of Object.entries({ due, dueFrom, dueTo })) {
    if (value !== undefined && dueMs(value) === undefined) {
      throw invalid(field, `${field} is no date: use ISO 8601, YYYY-MM-DD`);
    }
  }
  if (due !== undefined) return { dueFrom: due, dueTo: `${due}T23:59:59.999Z` };
  return {
    ...(dueFrom === undefined ? {} : { dueFrom }),
    ...(dueTo === undefined ? {} : { dueTo }),
  };
}
