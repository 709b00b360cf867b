// Routes of tasks: lists, the board and watching. Only tags in the chat change a task.

import { Type } from 'millrace/contracts';
import type { RouteResponse, Route } from 'millrace/platform';
import {
  boardSchema,
  prioritySchema,
  statusSchema,
  taskSchema,
  taskTypeSchema,
} from '../documents.ts';
import { pageResponse, pageLimits, pageQuery, pageSchema } from '../pages.ts';
import { dueMs } from '../tasks/due-date.ts';
import { unwatchTask, watchTask } from '../tasks/task-events.ts';
import { findTasks, taskBoard, taskProjection } from '../tasks/task-read-models.ts';
import type { WorkspaceDocument } from '../workspace.ts';
import type { ResourceReach } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { invalid } from './collab-errors.ts';
import type { EndpointContext, EndpointMaker } from './endpoints.ts';

const directions = { asc: 'ascending', desc: 'descending' } as const;
const dateText = Type.String({ maxLength: 40, description: 'ISO 8601 date or date-time.' });

export function taskRoutes(
  endpointsOf: EndpointMaker,
  { reach, documents }: { readonly reach: ResourceReach; readonly documents: CollabDocuments },
): readonly Route[] {
  const endpoint = endpointsOf('collab: tasks');
  const setWatching = async (
    id: string,
    command: ReturnType<typeof unwatchTask | typeof watchTask>,
    { me, rule, send }: Pick<EndpointContext<'unwatchTask' | 'watchTask'>, 'me' | 'rule' | 'send'>,
  ): Promise<RouteResponse> => {
    await reach.task(me, id, rule);
    await send({ id, command, visibleIn: taskProjection });
    return { status: 204 };
  };

  return [
    endpoint('listTasks', {
      summary: 'List the tasks of a workspace that the caller may see',
      query: Type.Object({
        ...pageQuery,
        type: Type.Optional(taskTypeSchema),
        status: Type.Optional(statusSchema),
        assignee: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 65,
            description: 'A user id, `@username`, `me` or `none`.',
          }),
        ),
        priority: Type.Optional(prioritySchema),
        due: Type.Optional(
          Type.String({ maxLength: 10, description: 'Due on this day (UTC): YYYY-MM-DD.' }),
        ),
        dueFrom: Type.Optional(dateText),
        dueTo: Type.Optional(dateText),
        search: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 200,
            description: 'Words or prefixes of words in the title.',
          }),
        ),
        sort: Type.Optional(
          Type.Enum(['created', 'updated', 'due', 'priority'], {
            description: 'Default: created. `due` returns only tasks with a due date.',
          }),
        ),
        order: Type.Optional(Type.Enum(['asc', 'desc'])),
      }),
      responses: { 200: { description: 'Tasks', schema: pageSchema(taskSchema) } },
      async handle({ params: { w }, query, memory }, { me, rule }) {
        const workspace = await reach.workspace(me, w, rule);
        const { limit = pageLimits.default, cursor, sort, order } = query;
        const { type, status, priority, search } = query;
        const request = {
          tenant: me.tenant,
          userId: me.userId,
          workspaceId: w,
          filters: {
            type,
            status,
            priority,
            search,
            assignee: assigneeOf(query.assignee, workspace, me.userId),
            ...dueBounds(query),
          },
          sort,
          direction: order === undefined ? undefined : directions[order],
        };
        const page = await memory.page({ limit, cursor }, (part) =>
          findTasks(documents, { ...request, ...part }),
        );
        return pageResponse(page);
      },
    }),
    endpoint('getBoard', {
      summary: 'Get the board: tasks by status, with counts',
      query: Type.Object({
        type: Type.Optional(taskTypeSchema),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: pageLimits.max,
            description: `Tasks per column; GET …/tasks lists the rest. Default: ${pageLimits.default}.`,
          }),
        ),
      }),
      responses: { 200: { description: 'The board', schema: boardSchema } },
      async handle({ params: { w }, query: { type, limit }, memory }, { me, rule }) {
        await reach.workspace(me, w, rule);
        const { tenant, userId } = me;
        const request = { tenant, userId, workspaceId: w, limit, type };
        const columns = await memory.load(() => taskBoard(documents, request));
        return { body: { columns } };
      },
    }),
    endpoint('getTask', {
      summary: 'Get a task; it has the id of its chat',
      responses: { 200: { description: 'The task', schema: taskSchema } },
      handle: async ({ params: { id } }, { me, rule }) => ({
        body: await reach.task(me, id, rule),
      }),
    }),
    endpoint('watchTask', {
      summary: 'Watch a task: get notifications about its changes',
      responses: { 204: { description: 'Watching' } },
      handle: ({ params: { id } }, context) =>
        setWatching(id, watchTask({ userId: context.me.userId }), context),
    }),
    endpoint('unwatchTask', {
      summary: 'Stop watching a task',
      responses: { 204: { description: 'Not watching' } },
      handle: ({ params: { id } }, context) =>
        setWatching(id, unwatchTask({ userId: context.me.userId }), context),
    }),
  ];
}

/** The filter value of `assignee`; a name outside the workspace matches no task. */
function assigneeOf(
  value: string | undefined,
  { members }: WorkspaceDocument,
  userId: string,
): string | null | undefined {
  if (value === 'none') return null;
  if (value === 'me') return userId;
  if (value?.startsWith('@') !== true) return value;
  const name = value.slice(1).toLowerCase();
  return members.find(({ username }) => username.toLowerCase() === name)?.userId ?? value;
}

function dueBounds({
  due,
  dueFrom,
  dueTo,
}: {
  readonly due?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
}): { readonly dueFrom?: string | undefined; readonly dueTo?: string | undefined } {
  for (const [field, value] of Object.entries({ due, dueFrom, dueTo })) {
    if (value !== undefined && dueMs(value) === undefined) {
      throw invalid(field, `Invalid date "${value}". Use ISO 8601: YYYY-MM-DD.`);
    }
  }
  if (due !== undefined) return { dueFrom: due, dueTo: `${due}T23:59:59.999Z` };
  return { dueFrom, dueTo };
}
