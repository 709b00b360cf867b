// Formats a trace as text: a tree with times at the left and failures in red.

import type { Trace } from '../../traces/create-traces.ts';
import type {
  DeliveryNode,
  HandlerNode,
  JobNode,
  SagaNode,
  TaskNode,
  TraceNode,
} from '../../traces/trace-node.ts';
import type { Paint } from '../terminal/paint.ts';
import { counted, printable } from '../terminal/text.ts';

/** Deeper trees do not fit on a screen. */
const railsMax = 40;

export function traceText(trace: Trace, paint: Paint): string {
  const nodes = trace.nodes.map(printableNode);
  const times = nodes.map(({ offsetMs }) =>
    offsetMs === null ? '' : `+${durationText(offsetMs)}`,
  );
  const width = Math.max(0, ...times.map((time) => time.length));
  const rails = railsOf(nodes);
  const lines = nodes.map(
    (node, at) =>
      `${paint.dim((times[at] ?? '').padStart(width))}  ${paint.dim(rails[at] ?? '')}${nodeText(node, paint)}`,
  );
  return [headText(trace, paint), '', ...lines, ...notesOf(trace, paint), ''].join('\n');
}

function headText({ correlationId, nodes, startedAt, durationMs }: Trace, paint: Paint): string {
  const count = (kind: TraceNode['kind']): number =>
    nodes.filter((node) => node.kind === kind).length;
  const dead = nodes.filter(isDead).length;
  const parts = [
    counted(count('command'), 'command'),
    counted(count('event'), 'event'),
    counted(count('delivery'), 'delivery', 'deliveries'),
    ...(dead === 0 ? [] : [paint.red(`${dead} dead`)]),
    durationText(durationMs),
    ...(startedAt === null ? [] : [`since ${startedAt}`]),
  ];
  return `${paint.bold(firstLine(correlationId))}  ${parts.join(', ')}`;
}

function notesOf({ complete, truncated, missing }: Trace, paint: Paint): readonly string[] {
  const notes = [
    ...(complete ? [] : ['the trace index has not caught up: the latest events may be missing']),
    ...(truncated ? ['truncated: the trace has more nodes'] : []),
    ...(missing === 0 ? [] : [`removed from the store: ${counted(missing, 'event')}`]),
  ];
  return notes.length === 0 ? [] : ['', ...notes.map((note) => paint.yellow(note))];
}

function isDead(node: TraceNode): boolean {
  return (
    (node.kind === 'handler' && node.state === 'dead') ||
    (node.kind === 'delivery' && node.status === 'DEAD')
  );
}

function nodeText(node: TraceNode, paint: Paint): string {
  switch (node.kind) {
    case 'command': {
      const cause = node.causationId === null ? '' : paint.dim(`  caused by ${node.causationId}`);
      return `${paint.bold(node.command)}  ${durationText(node.durationMs)}${cause}`;
    }
    case 'event': {
      const location = paint.dim(`${node.stream} @${node.revision}`);
      const cause = node.causationId === null ? '' : paint.dim(`  caused by ${node.causationId}`);
      return `${paint.cyan(node.type)}  ${location}${cause}`;
    }
    case 'handler':
      return handlerText(node, paint);
    case 'job':
      return jobText(node, paint);
    case 'delivery':
      return deliveryText(node, paint);
    case 'task':
      return taskText(node, paint);
    case 'message':
      return `✉ ${node.topic}  ${paint.dim(`message ${node.message}`)}`;
    default:
      return sagaText(node, paint);
  }
}

function taskText({ type, state, dueAt, waitsFor, error, task }: TaskNode, paint: Paint): string {
  const due = dueAt === null ? '' : `, ${waitsFor ?? 'due'} until ${dueAt}`;
  const what = `${state}${due}${error === null ? '' : `: ${error}`}`;
  return `⚙ ${type}  ${state === 'failed' ? paint.red(what) : what}${paint.dim(`  job ${task}`)}`;
}

function sagaText({ saga, status, reason, timers, stream }: SagaNode, paint: Paint): string {
  const due = timers.map(({ timer, dueAt }) => `, timer ${firstLine(timer)} at ${dueAt}`).join('');
  const what = `${status}${due}${reason === null ? '' : `: ${reason}`}`;
  return `◆ ${saga}  ${status === 'parked' ? paint.red(what) : what}${paint.dim(`  ${stream}`)}`;
}

function handlerText(node: HandlerNode, paint: Paint): string {
  const { subscription, state, failures, error, deadLetter } = node;
  const signs = {
    passed: paint.green('✓'),
    replayed: paint.green('✓'),
    pending: paint.dim('·'),
    waiting: paint.yellow('↻'),
    dead: paint.red('✗'),
    discarded: paint.dim('✗'),
  };
  const failed =
    failures === null || failures === 0 ? '' : ` after ${counted(failures, 'failure')}`;
  const why = error === null ? '' : `: ${error}`;
  const what = state === 'passed' ? '' : `  ${state}${failed}${why}`;
  const letter = deadLetter === null ? '' : paint.dim(`  dlq ${deadLetter}`);
  return `${signs[state]} ${subscription}${state === 'dead' ? paint.red(what) : what}${letter}`;
}

function deliveryText(node: DeliveryNode, paint: Paint): string {
  const { status, attempts, durationMs, error } = node;
  const isSent = status === 'SENT';
  const sign = isSent ? paint.green('➜') : status === 'DEAD' ? paint.red('➜') : paint.yellow('➜');
  const took = durationMs === null ? '' : ` in ${durationText(durationMs)}`;
  const failed = attempts === 0 ? '' : ` after ${counted(attempts, 'failure')}`;
  const why = error === null ? '' : `: ${error}`;
  const due = isSent || status === 'DEAD' || status === 'DISCARDED' ? '' : `, due ${node.dueAt}`;
  const what = `${status}${took}${failed}${due}${why}`;
  const letter = paint.dim(`  outbox ${node.message}`);
  return `${sign} ${node.destination}  ${status === 'DEAD' ? paint.red(what) : what}${letter}`;
}

function jobText(node: JobNode, paint: Paint): string {
  const { queue, attempt, outcome, waitedMs, durationMs, job } = node;
  const signs = {
    sent: paint.green('⚙'),
    failed: paint.yellow('⚙'),
    lost: paint.yellow('⚙'),
    dead: paint.red('⚙'),
    running: paint.dim('⚙'),
  };
  const took = durationMs === null ? '' : ` in ${durationText(durationMs)}`;
  const waited = paint.dim(`, waited ${durationText(waitedMs)}`);
  return `${signs[outcome]} ${queue} #${attempt}  ${outcome}${took}${waited}${paint.dim(`  job ${job}`)}`;
}

/** The prefix of each node: a vertical line for every ancestor with further children. */
function railsOf(nodes: readonly TraceNode[]): readonly string[] {
  const met = new Set<string>();
  const isLast = nodes
    .toReversed()
    .map(({ parent }) => {
      const last = parent !== null && !met.has(parent);
      if (parent !== null) met.add(parent);
      return last;
    })
    .toReversed();
  const lasts: boolean[] = [];
  return nodes.map(({ depth }, at) => {
    lasts[depth] = isLast[at] ?? true;
    if (depth === 0) return '';
    if (depth > railsMax) return `… ${depth}  `;
    const above = lasts.slice(1, depth).map((last) => (last ? '   ' : '│  '));
    return `${above.join('')}${lasts[depth] ? '└─ ' : '├─ '}`;
  });
}

function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(2)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

/** Ids and error texts are external input: they must not control the terminal. */
function printableNode(node: TraceNode): TraceNode {
  const cells = Object.entries(node).map(([field, value]: [string, unknown]) => [
    field,
    typeof value === 'string' ? firstLine(value) : value,
  ]);
  return Object.fromEntries(cells) as TraceNode;
}

function firstLine(text: string): string {
  return printable(text.split('\n')[0] ?? '');
}
