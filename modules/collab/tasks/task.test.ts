import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given } from 'millrace/testing';
import { parseTags } from './tag-parser.ts';
import {
  applyTags,
  assigneeChanged,
  createTask,
  dueChanged,
  priorityChanged,
  severityChanged,
  statusChanged,
  tagsAnswered,
  taskCreated,
  titleChanged,
  typeChanged,
  unwatchTask,
  watcherAdded,
  watcherRemoved,
  watchTask,
} from './task-events.ts';
import { task } from './task.ts';

// `given` runs every aggregate with the id `given` at this time.
const taskIds = { taskId: 'given', chatId: 'given', workspaceId: 'w-1' };
const timestamp = '2025-09-30T10:00:00.000Z';
const change = { ...taskIds, changedBy: 'ada', timestamp };
const origin = { workspaceId: 'w-1', isPublic: true };
const creation = { createdBy: 'ada', timestamp, isPublic: true };
const aTask = [
  taskCreated({ ...taskIds, ...creation, type: 'task', title: 'Ship', status: 'To Do' }),
];
const aBug = [taskCreated({ ...taskIds, ...creation, type: 'bug', title: 'Crash', status: 'New' })];
const anEpic = [
  taskCreated({ ...taskIds, ...creation, type: 'epic', title: 'Big', status: 'Planned' }),
];
type History = Parameters<typeof given<unknown, never, never>>[1];

function tagged(content: string): ReturnType<typeof applyTags> {
  const { commands, leftOut } = parseTags(content);
  return applyTags({
    ...origin,
    messageId: 'm-1',
    by: 'ada',
    tags: [...commands],
    leftOut,
    users: [{ username: 'alex', userId: 'u-alex' }],
  });
}

function answered(...lines: string[]): ReturnType<typeof tagsAnswered> {
  return tagsAnswered({ messageId: 'm-1', chatId: 'given', authorId: 'ada', lines });
}

/** Checks that the message causes only these lines of the bot. */
function says(history: History, content: string, ...lines: string[]): void {
  given(task, history)
    .when(tagged(content))
    .then([answered(...lines)]);
}

test('a typed chat creates a task in the first status of its type', () => {
  const subject = { ...origin, type: 'bug', title: 'Crash', createdBy: 'ada' } as const;
  given(task, []).when(createTask(subject)).then(aBug);
  given(task, aBug).when(createTask(subject)).then([]);
});

test('#task, #bug and #epic turn a discussion into a task', () => {
  given(task, []).when(tagged('#task Ship')).then(aTask);
  given(task, []).when(tagged('#bug Crash')).then(aBug);
  given(task, []).when(tagged('#epic Big')).then(anEpic);
});

test('a task needs a title', () => {
  const usage = (name: string, tag: string): string =>
    `❌ ${name} title is required. Usage: #${tag} <title>`;
  for (const history of [[], aTask]) {
    says(history, '#task', usage('Task', 'task'));
    says(history, '#bug   ', usage('Bug', 'bug'));
    says(history, '#epic', usage('Epic', 'epic'));
    const long = `#task ${'x'.repeat(501)}`;
    says(history, long, '❌ Title is too long. At most 500 characters');
  }
});

test('other tags have no effect in a discussion before a tag that creates a task', () => {
  given(task, [])
    .when(tagged('#status Done\n#title x\n#severity x\n#due x\n#assignee x\n#priority x'))
    .then([]);
  const changed = statusChanged({ ...change, oldStatus: 'To Do', newStatus: 'Done' });
  given(task, [])
    .when(tagged('#priority High #task Ship #status Done'))
    .then([...aTask, changed, answered('✅ Status changed to Done')]);
});

test('a type change resets a status that the new type does not have', () => {
  const changed = (title: string) => ({ ...change, title });
  given(task, aTask)
    .when(tagged('#bug Crash'))
    .then([typeChanged({ ...changed('Crash'), oldType: 'task', newType: 'bug', status: 'New' })]);
  const busy = [
    ...aTask,
    statusChanged({ ...change, oldStatus: 'To Do', newStatus: 'In Progress' }),
  ];
  given(task, busy)
    .when(tagged('#epic Ship'))
    .then([
      typeChanged({ ...changed('Ship'), oldType: 'task', newType: 'epic', status: 'In Progress' }),
    ]);
  given(task, aTask)
    .when(tagged('#task Sail'))
    .then([titleChanged({ ...change, newTitle: 'Sail' })]);
  given(task, aTask).when(tagged('#task Ship')).then([]);
});

test('a bug that becomes another type loses its severity', () => {
  const severe = severityChanged({ ...change, oldSeverity: null, newSeverity: 'Major' });
  given(task, [...aBug, severe])
    .when(tagged('#task Crash'))
    .thenState(({ severity, type }) => type === 'task' && severity === null);
});

test('#status accepts the statuses of the type, case-sensitively', () => {
  for (const [history, first, last] of [
    [aTask, 'To Do', 'Done'],
    [aBug, 'New', 'Verified'],
    [anEpic, 'Planned', 'Completed'],
  ] as const) {
    given(task, history)
      .when(tagged(`#status ${last}`))
      .then([
        statusChanged({ ...change, oldStatus: first, newStatus: last }),
        answered(`✅ Status changed to ${last}`),
      ]);
    says(history, `#status ${first}`, `✅ Status changed to ${first}`);
  }
  says(
    aTask,
    '#status done',
    "❌ Invalid status 'done' for Task. Available: To Do, In Progress, Done",
  );
  says(
    aBug,
    '#status Done',
    "❌ Invalid status 'Done' for Bug. Available: New, Investigating, Fixed, Verified",
  );
  says(
    anEpic,
    '#status',
    "❌ Invalid status '' for Epic. Available: Planned, In Progress, Completed",
  );
});

test('#assignee accepts the name of a member, and clears the assignee', () => {
  const assigned = assigneeChanged({ ...change, oldAssignee: null, newAssignee: 'u-alex' });
  given(task, aTask)
    .when(tagged('#assignee @alex'))
    .then([assigned, answered('✅ Assigned to: @alex')])
    .thenState(({ assignedAtMs }) => assignedAtMs === Date.parse(timestamp));
  const alexs = [...aTask, assigned];
  says(alexs, '#assignee @alex', '✅ Assigned to: @alex');
  for (const tag of ['#assignee', '#assignee @none']) {
    given(task, alexs)
      .when(tagged(tag))
      .then([
        assigneeChanged({ ...change, oldAssignee: 'u-alex', newAssignee: null }),
        answered('✅ Assignee removed'),
      ])
      .thenState(({ assignedAtMs }) => assignedAtMs === null);
  }
  says(aTask, '#assignee @bob', '❌ User @bob not found');
  says(aTask, '#assignee @constructor', '❌ User @constructor not found');
  for (const bad of ['alex', '@', '@alex bob', '@al/ex', '@зоя', 'none']) {
    says(aTask, `#assignee ${bad}`, '❌ Invalid assignee format. Use @username');
  }
});

test('#priority accepts three values', () => {
  given(task, aTask)
    .when(tagged('#priority High'))
    .then([
      priorityChanged({ ...change, oldPriority: null, newPriority: 'High' }),
      answered('✅ Priority changed to High'),
    ]);
  says(aTask, '#priority high', "❌ Invalid priority 'high'. Available: High, Medium, Low");
});

test('#due accepts existing ISO 8601 dates, and an empty value clears it', () => {
  const due = dueChanged({ ...change, oldDue: null, newDue: '2026-10-20' });
  given(task, aTask)
    .when(tagged('#due 2026-10-20'))
    .then([due, answered('✅ Due date set to 2026-10-20')]);
  given(task, [...aTask, due])
    .when(tagged('#due'))
    .then([
      dueChanged({ ...change, oldDue: '2026-10-20', newDue: null }),
      answered('✅ Due date removed'),
    ]);
  for (const bad of ['tomorrow', '2026-02-29', '20.10.2026']) {
    says(aTask, `#due ${bad}`, '❌ Invalid date format. Use ISO 8601: YYYY-MM-DD');
  }
});

test('#title accepts any text except an empty one', () => {
  for (const title of ['Sail', 'Отправить 🚀', 'שלום']) {
    given(task, aTask)
      .when(tagged(`#title ${title}`))
      .then([
        titleChanged({ ...change, newTitle: title }),
        answered(`✅ Title changed to ${title}`),
      ]);
  }
  says(aTask, '#title', '❌ Title cannot be empty');
  says(aTask, `#title ${'x'.repeat(501)}`, '❌ Title is too long. At most 500 characters');
});

test('#severity applies to bugs only', () => {
  given(task, aBug)
    .when(tagged('#severity Critical'))
    .then([
      severityChanged({ ...change, oldSeverity: null, newSeverity: 'Critical' }),
      answered('✅ Severity changed to Critical'),
    ]);
  says(
    aBug,
    '#severity critical',
    "❌ Invalid severity 'critical'. Available: Critical, Major, Minor, Trivial",
  );
  for (const history of [aTask, anEpic]) {
    says(history, '#severity Critical', '⚠️ Severity is only applicable to Bugs');
  }
});

test('each tag is judged separately, against the state after the tags before it', () => {
  given(task, aTask)
    .when(tagged('Look:\n#status Doing #priority Low\n#status Done #status To Do'))
    .then([
      priorityChanged({ ...change, oldPriority: null, newPriority: 'Low' }),
      statusChanged({ ...change, oldStatus: 'To Do', newStatus: 'Done' }),
      statusChanged({ ...change, oldStatus: 'Done', newStatus: 'To Do' }),
      answered(
        "❌ Invalid status 'Doing' for Task. Available: To Do, In Progress, Done",
        '✅ Priority changed to Low',
        '✅ Status changed to Done',
        '✅ Status changed to To Do',
      ),
    ]);
});

test('a long quoted value is cut between characters', () => {
  const family = '👨‍👩‍👧‍👦';
  given(task, aTask)
    .when(tagged(`#priority ${family.repeat(20)}`))
    .then([answered(`❌ Invalid priority '${family.repeat(5)}…'. Available: High, Medium, Low`)]);
});

test('the first thousand tags count, and the reply states how many were ignored', () => {
  const many = '#status Done\n#status To Do\n'.repeat(501);
  const { commands, leftOut } = parseTags(many);
  assert.deepEqual([commands.length, leftOut], [1_000, 2]);
  const last = '❌ Only 1000 tags of a message count, 2 do not';
  given(task, aTask)
    .when(tagged(many))
    .thenState(({ status }) => status === 'To Do');
  const decided = task.decide(tagged(many), task.initial, contextOf());
  assert.deepEqual(
    decided.map(({ payload }) => payload),
    [answered(last).payload],
  );
});

test('users watch and unwatch a task', () => {
  given(task, aTask)
    .when(watchTask({ userId: 'bob' }))
    .then([watcherAdded({ ...taskIds, userId: 'bob' })])
    .thenState(({ watchers }) => watchers['bob'] === Date.parse(timestamp));
  const watched = [...aTask, watcherAdded({ ...taskIds, userId: 'bob' })];
  given(task, watched)
    .when(watchTask({ userId: 'bob' }))
    .then([]);
  given(task, watched)
    .when(unwatchTask({ userId: 'bob' }))
    .then([watcherRemoved({ ...taskIds, userId: 'bob' })])
    .thenState(({ watchers }) => Object.keys(watchers).length === 0);
  given(task, watched)
    .when(unwatchTask({ userId: 'constructor' }))
    .then([]);
  given(task, aTask)
    .when(unwatchTask({ userId: 'bob' }))
    .then([]);
  given(task, [])
    .when(watchTask({ userId: 'bob' }))
    .thenRejected('task-unknown');
  given(task, [])
    .when(unwatchTask({ userId: 'bob' }))
    .thenRejected('task-unknown');
});

function contextOf(): Parameters<typeof task.decide>[2] {
  const ids = { commandId: 'c', correlationId: 'c', nextId: () => 'n' };
  return { ...ids, tenant: 'test', id: 'given', revision: -1, nowMs: Date.parse(timestamp) };
}
