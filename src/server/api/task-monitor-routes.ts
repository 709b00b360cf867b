// The streams of tasks over HTTP: the ends of all jobs by a durable group, and who reads them.

import { Type } from '../../contracts/type.ts';
import { consumerGroups } from '../../contracts/subjects.ts';
import {
  forgetMonitors,
  monitorTasks,
  taskGroups,
  type MonitoredEnd,
} from '../../platform/monitor-tasks.ts';
import { serverSentEvents, type SentEvent } from '../../platform/modules/server-sent-events.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { audited, checkGlobal, closed, pageOf, text, type AdminContext } from './admin/admin-context.ts';

const tag = 'admin: tasks';
const access = 'admin';
const groupText = text(64, `Who reads together. Default: ${consumerGroups.monitors}.`);

const groupInfo = Type.Object(
  {
    name: Type.String(),
    subject: Type.String(),
    lag: Type.Integer({ description: 'Not handed out yet.' }),
    pending: Type.Integer({ description: 'Handed out, and not acked.' }),
    leaseMs: Type.Integer(),
    maxAckPending: Type.Integer(),
  },
  { title: 'TaskGroup' },
);

export function taskMonitorRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;
  return [
    route({
      method: 'GET',
      path: '/api/v1/jobs/groups',
      summary: 'Who reads the streams of tasks, and how far each is behind, of all tenants',
      tag: 'tasks',
      access: 'read',
      answers: { 200: { description: 'All of them', schema: pageOf(groupInfo) } },
      async handle(request) {
        checkGlobal(request);
        return { body: { items: await taskGroups(await platform.taskBus()) } };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/jobs/ends',
      summary: 'Every end of a job, of all tenants, by a durable group (server-sent events)',
      description:
        'Goes on where the group was; each end goes to one reader of it, and counts as read when it was sent and the next one is due: whoever breaks off is told of the last ones again. A group that nobody reads holds the streams: delete it.',
      tag: 'tasks',
      access,
      isLong: true,
      query: closed({ group: Type.Optional(groupText) }),
      answers: { 200: { description: 'Ends as they come', contentType: 'text/event-stream' } },
      async handle(request) {
        checkGlobal(request);
        const { group } = request.query;
        const bus = await platform.taskBus();
        const ends = await monitorTasks(bus, { group, signal: request.signal });
        return serverSentEvents(toEvents(ends), request);
      },
    }),
    route({
      method: 'POST',
      path: '/admin/jobs/ends/{group}/forget',
      summary: 'Deletes a group that reads the ends of jobs',
      tag,
      access,
      params: closed({ group: groupText }),
      answers: {
        200: { description: 'False: there was none', schema: closed({ deleted: Type.Boolean() }) },
      },
      handle: (request) => {
        const { group } = request.params;
        const what = { action: 'task.forget-monitors', target: group };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          return { body: { deleted: await forgetMonitors(await platform.taskBus(), group) } };
        });
      },
    }),
  ];
}

async function* toEvents(ends: AsyncIterable<MonitoredEnd>): AsyncGenerator<SentEvent> {
  for await (const { id, at, tenant, deliveryCount, signal } of ends) {
    yield { event: 'terminal', id, data: { at, tenant, deliveryCount, ...signal } };
  }
}
