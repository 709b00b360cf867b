// A flow as sentences: what caused it, what followed, and what waits until when. Pure; each subject is a link.

import { durationText } from './format.ts';
import type { Trace, TraceNode } from './trace-rows.ts';

/** A part of a sentence. */
export type Part =
  | string
  /** A node of the flow. */
  | { readonly node: string; readonly text: string }
  | { readonly stream: string; readonly text: string }
  | { readonly job: string; readonly text: string }
  | { readonly delivery: string; readonly text: string }
  /** A time, which is shown as local time. */
  | { readonly at: string };

export interface Sentence {
  readonly parts: readonly Part[];
  readonly tone: 'bad' | 'good' | 'neutral' | 'warn';
  /** The node that the sentence is about. */
  readonly node: string;
}

export interface Explanation {
  readonly causes: readonly Sentence[];
  readonly followed: readonly Sentence[];
  readonly waits: readonly Sentence[];
}

/**
 * Explains a flow, or one of its nodes: the nodes above it are its causes, the nodes below it are what followed. `of`
 * undefined: the whole flow.
 */
export function explain(trace: Trace, of?: string): Explanation {
  const context = contextOf(trace);
  const { byId } = context;
  const subject = of === undefined ? undefined : byId.get(of);
  const about = subject === undefined ? trace.nodes : [subject, ...below(trace.nodes, subject)];
  const roots = subject === undefined ? trace.nodes.filter(({ parent }) => parent === null) : [];
  const causes =
    subject === undefined
      ? roots.map((node) => originOf(node))
      : [...above(byId, subject), subject].map((node, at) =>
          at === 0 ? originOf(node) : whatHappened(node, context),
        );
  const isCause = new Set(causes.map(({ node }) => node));
  const rest = about.filter(({ id }) => !isCause.has(id));
  return {
    causes,
    followed: combined(rest, context),
    waits: about.flatMap((node) => waitsOf(node)),
  };
}

interface Context {
  readonly byId: ReadonlyMap<string, TraceNode>;
  readonly children: ReadonlyMap<string | null, readonly TraceNode[]>;
}

function contextOf({ nodes }: Trace): Context {
  return {
    byId: new Map(nodes.map((node) => [node.id, node])),
    children: Map.groupBy(nodes, ({ parent }) => parent),
  };
}

/** The event that a handler has processed. */
function eventOf({ parent }: TraceNode, { byId }: Context): Part {
  const event = byId.get(parent ?? '');
  return event?.kind === 'event' ? link(event, event.type) : 'the event';
}

function above(byId: ReadonlyMap<string, TraceNode>, node: TraceNode): readonly TraceNode[] {
  const found: TraceNode[] = [];
  for (
    let next = byId.get(node.parent ?? '');
    next !== undefined && !found.includes(next);
    next = byId.get(next.parent ?? '')
  )
    found.unshift(next);
  return found;
}

/** The nodes are in depth-first order. */
function below(nodes: readonly TraceNode[], node: TraceNode): readonly TraceNode[] {
  const start = nodes.indexOf(node) + 1;
  const end = nodes.findIndex(({ depth }, at) => at >= start && depth <= node.depth);
  return nodes.slice(start, end === -1 ? nodes.length : end);
}

const link = (node: TraceNode, text: string): Part => ({ node: node.id, text });

function sentence(node: TraceNode, tone: Sentence['tone'], ...parts: readonly Part[]): Sentence {
  return { node: node.id, tone, parts: parts.filter((part) => part !== '') };
}

/** The sentence about a node without a cause in the flow. */
function originOf(node: TraceNode): Sentence {
  const outside = 'causationId' in node ? node.causationId : null;
  const from = outside === null ? '' : `, caused by ${outside}, which is not part of this flow`;
  switch (node.kind) {
    case 'command': {
      const cause = outside === null ? '' : ` Its causation id is ${outside}.`;
      return sentence(
        node,
        'neutral',
        'The command ',
        link(node, node.command),
        ` was sent for the tenant ${node.tenant} at `,
        { at: node.at },
        `.${cause}`,
      );
    }
    case 'event':
      return sentence(
        node,
        'neutral',
        'The event ',
        link(node, node.type),
        ' was appended to ',
        { stream: node.stream, text: node.stream },
        ' at ',
        { at: node.recordedAt },
        `${from}. No command is recorded.`,
      );
    case 'task':
      return sentence(
        node,
        'neutral',
        'The job ',
        link(node, node.type),
        ' was enqueued at ',
        { at: node.enqueuedAt },
        `${from}.`,
      );
    case 'message':
      return sentence(
        node,
        'neutral',
        'A message was published to the topic ',
        link(node, node.topic),
        ' at ',
        { at: node.storedAt },
        `${from}.`,
      );
    default:
      return whatHappened(node, { byId: new Map(), children: new Map() });
  }
}

function whatHappened(node: TraceNode, context: Context): Sentence {
  switch (node.kind) {
    case 'command': {
      const events = (context.children.get(node.id) ?? []).filter(
        ({ kind }) => kind === 'event',
      ).length;
      const result = `${events === 1 ? '1 event' : `${events} events`} in ${durationText(node.durationMs)}`;
      return sentence(
        node,
        'neutral',
        'The command ',
        link(node, node.command),
        ` was decided: ${result}.`,
      );
    }
    case 'event':
      return sentence(
        node,
        'neutral',
        'The event ',
        link(node, node.type),
        ` was recorded at revision ${node.revision} of `,
        { stream: node.stream, text: node.stream },
        '.',
      );
    case 'handler':
      return aboutHandler(node, context);
    case 'delivery':
      return aboutDelivery(node);
    case 'job':
      return aboutAttempt(node);
    case 'task':
      return aboutTask(node);
    case 'message':
      return sentence(
        node,
        'good',
        'A message was published to the topic ',
        link(node, node.topic),
        ' at ',
        { at: node.storedAt },
        '.',
      );
    default: {
      const isParked = node.status === 'parked';
      // The reason of a parked saga is a code: handler-failed.
      const reason = isParked ? node.reason?.replaceAll('-', ' ') : node.reason;
      const why = typeof reason === 'string' ? `: ${reason}` : '';
      const tone = isParked ? 'bad' : 'neutral';
      return sentence(
        node,
        tone,
        'The saga ',
        link(node, node.saga),
        ' of ',
        { stream: node.stream, text: node.key },
        ` is ${node.status}${why}.`,
      );
    }
  }
}

type Of<Kind extends TraceNode['kind']> = Extract<TraceNode, { readonly kind: Kind }>;

function aboutHandler(node: Of<'handler'>, context: Context): Sentence {
  const name = link(node, node.subscription);
  const failed = timesText(node.failures ?? 0);
  const why = node.error === null ? '' : `: ${node.error}`;
  switch (node.state) {
    case 'passed':
      return sentence(
        node,
        'good',
        'The handler ',
        name,
        ' has processed ',
        eventOf(node, context),
        '.',
      );
    case 'dead':
      return sentence(
        node,
        'bad',
        'The handler ',
        name,
        ` failed ${failed} and made the event a dead letter`,
        ...timeOf(node.at),
        `${why}.`,
      );
    case 'discarded':
      return sentence(
        node,
        'neutral',
        'An operator discarded the event for the handler ',
        name,
        `${why}.`,
      );
    case 'replayed':
      return sentence(
        node,
        'good',
        'The event was replayed for the handler ',
        name,
        `, which had failed ${failed}.`,
      );
    default:
      return sentence(node, 'warn', 'The handler ', name, ' has not processed the event.');
  }
}

function aboutDelivery(node: Of<'delivery'>): Sentence {
  const name = link(node, node.destination);
  const why = node.error === null ? '' : `: ${node.error}`;
  const details: Part = { delivery: node.message, text: 'attempts' };
  if (node.status === 'SENT') {
    const took =
      node.durationMs === null ? '' : ` ${durationText(node.durationMs)} after it was enqueued`;
    const before =
      node.attempts === 0
        ? ''
        : `, after ${node.attempts} failed ${node.attempts === 1 ? 'attempt' : 'attempts'}`;
    return sentence(
      node,
      'good',
      `The message ${node.type} was delivered to `,
      name,
      `${took}${before} (`,
      details,
      ').',
    );
  }
  if (node.status === 'DEAD') {
    return sentence(
      node,
      'bad',
      `The message ${node.type} to `,
      name,
      ` failed ${timesText(node.attempts)} and is not tried again (`,
      details,
      `)${why}.`,
    );
  }
  if (node.attempts > 0) {
    return sentence(
      node,
      'bad',
      `The message ${node.type} to `,
      name,
      ` failed ${node.attempts} of ${node.attemptsMax} times (`,
      details,
      `)${why}.`,
    );
  }
  return sentence(node, 'warn', `The message ${node.type} to `, name, ' has not been sent.');
}

function aboutAttempt(node: Of<'job'>): Sentence {
  const tone = node.outcome === 'sent' ? 'good' : node.outcome === 'running' ? 'warn' : 'bad';
  const took = node.durationMs === null ? '' : ` after ${durationText(node.durationMs)}`;
  const texts: Readonly<Record<typeof node.outcome, string>> = {
    sent: `sent the message${took}`,
    running: 'runs',
    lost: 'ended without an outcome, because its worker was lost',
    failed: `failed${took}`,
    dead: `failed${took} and was the last`,
  };
  const text = texts[node.outcome];
  return sentence(
    node,
    tone,
    'The ',
    link(node, `attempt ${node.attempt}`),
    ` of the queue ${node.queue} ${text}.`,
  );
}

function aboutTask(node: Of<'task'>): Sentence {
  const name = link(node, node.type);
  const id: Part = { job: node.task, text: 'details' };
  const took = node.durationMs === null ? '' : ` after ${durationText(node.durationMs)}`;
  switch (node.state) {
    case 'completed':
      return sentence(node, 'good', 'The job ', name, ` completed${took} (`, id, ').');
    case 'failed':
      return sentence(
        node,
        'bad',
        'The job ',
        name,
        ` failed in attempt ${node.attempt} (`,
        id,
        `)${node.error === null ? '' : `: ${node.error}`}.`,
      );
    case 'cancelled':
      return sentence(node, 'neutral', 'The job ', name, ' was cancelled (', id, ').');
    case 'running':
      return sentence(
        node,
        'warn',
        'The job ',
        name,
        ` runs, attempt ${node.attempt}`,
        ...timeOf(node.startedAt, ', since '),
        ' (',
        id,
        ').',
      );
    default:
      return sentence(
        node,
        'neutral',
        'The job ',
        name,
        ' was enqueued at ',
        { at: node.enqueuedAt },
        ' (',
        id,
        ').',
      );
  }
}

/** What is still open, and until when. */
function waitsOf(node: TraceNode): readonly Sentence[] {
  switch (node.kind) {
    case 'handler': {
      const name = link(node, node.subscription);
      const failures = node.failures ?? 0;
      if (node.state === 'dead') {
        return [
          sentence(
            node,
            'bad',
            'The dead letter of ',
            name,
            ' waits for an operator: replay or discard it. Later events of its aggregate may wait for it.',
          ),
        ];
      }
      if (node.state === 'waiting') {
        return failures > 0
          ? [
              sentence(
                node,
                'warn',
                'The handler ',
                name,
                ` tries the event again; it failed ${timesText(failures)}${node.error === null ? '' : `: ${node.error}`}.`,
              ),
            ]
          : [
              sentence(
                node,
                'warn',
                'The handler ',
                name,
                ' waits for an earlier event of the same aggregate.',
              ),
            ];
      }
      if (node.state !== 'pending') return [];
      return [
        sentence(
          node,
          'warn',
          'The handler ',
          name,
          ' has not reached the event, or has not stored its checkpoint, which it does about once per second.',
        ),
      ];
    }
    case 'delivery': {
      const name = link(node, node.destination);
      if (node.status === 'SENT') return [];
      if (node.status === 'DEAD') {
        return [
          sentence(node, 'bad', 'The message to ', name, ' waits for an operator: replay it.'),
        ];
      }
      if (node.status === 'CLAIMED')
        return [sentence(node, 'warn', 'The message to ', name, ' is being sent.')];
      const left = node.attemptsMax - node.attempts;
      const next = node.attempts === 0 ? 'first attempt' : 'next attempt';
      return [
        sentence(
          node,
          'warn',
          'The message to ',
          name,
          ` waits for its ${next} at `,
          { at: node.dueAt },
          `; it is given up after ${left} more.`,
        ),
      ];
    }
    case 'task':
      return waitsOfTask(node);
    case 'saga':
      return waitsOfSaga(node);
    case 'job':
      return node.outcome === 'running'
        ? [
            sentence(
              node,
              'warn',
              'The ',
              link(node, `attempt ${node.attempt}`),
              ' of a delivery runs',
              ...timeOf(node.startedAt, ', since '),
              '.',
            ),
          ]
        : [];
    default:
      return [];
  }
}

function waitsOfTask(node: Of<'task'>): readonly Sentence[] {
  const name = link(node, node.type);
  const until = timeOf(node.dueAt, ' until ');
  const waits = (...parts: readonly Part[]): readonly Sentence[] => [
    sentence(node, 'warn', 'The job ', name, ...parts, '.'),
  ];
  switch (node.state) {
    case 'failed':
      return [sentence(node, 'bad', 'The job ', name, ' waits for an operator: retry it.')];
    case 'queued':
      return waits(' waits for a free worker');
    case 'running':
      return waits(` runs, attempt ${node.attempt}`);
    case 'completed':
    case 'cancelled':
      return [];
    default: {
      const [what = '', event = ''] = node.waitsFor?.split(' ') ?? [];
      if (what === 'event') return waits(` waits for the event “${event}”`, ...until);
      if (what === 'children') return waits(' waits for its child jobs', ...until);
      if (what === 'retry') return waits(' waits for its next attempt', ...until);
      return waits(' sleeps', ...until);
    }
  }
}

function waitsOfSaga(node: Of<'saga'>): readonly Sentence[] {
  const name = link(node, node.saga);
  const key = ` of ${node.key}`;
  if (node.status === 'parked') {
    return [
      sentence(
        node,
        'bad',
        'The saga ',
        name,
        `${key} waits for an operator: resume it or skip the failed work.`,
      ),
    ];
  }
  if (node.timers.length > 0) {
    return node.timers.map(({ timer, dueAt }) =>
      sentence(
        node,
        'warn',
        'The saga ',
        name,
        `${key} waits for the timer “${timer}” at `,
        { at: dueAt },
        ', or an event.',
      ),
    );
  }
  const isOver = node.status === 'completed' || node.status === 'compensated';
  return isOver ? [] : [sentence(node, 'warn', 'The saga ', name, `${key} waits for an event.`)];
}

/** How many handlers that passed are counted in one sentence instead of having one each. */
const passedMax = 1;
const eventsMax = 3;

/** One sentence per node; handlers that passed, and many events of one type, are one sentence. */
function combined(nodes: readonly TraceNode[], context: Context): readonly Sentence[] {
  const sentences: Sentence[] = [];
  const isPassed = (node: TraceNode): boolean => node.kind === 'handler' && node.state === 'passed';
  const passed = Map.groupBy(nodes.filter(isPassed), ({ parent }) => parent);
  const events = Map.groupBy(nodes.filter(isKind('event')), ({ type }) => type);
  const done = new Set<string>();
  for (const node of nodes) {
    if (done.has(node.id)) continue;
    const group: readonly TraceNode[] = isPassed(node)
      ? (passed.get(node.parent) ?? [])
      : node.kind === 'event'
        ? (events.get(node.type) ?? [])
        : [];
    const limit = node.kind === 'event' ? eventsMax : passedMax;
    if (group.length <= limit) {
      sentences.push(whatHappened(node, context));
      continue;
    }
    for (const each of group) done.add(each.id);
    const text = node.kind === 'event' ? node.type : 'handlers';
    sentences.push(
      node.kind === 'event'
        ? sentence(node, 'neutral', `${group.length} events `, link(node, text), ' were recorded.')
        : sentence(
            node,
            'good',
            `${group.length} handlers have processed `,
            eventOf(node, context),
            ': ',
            ...namesOf(group),
            '.',
          ),
    );
  }
  return sentences;
}

function namesOf(nodes: readonly TraceNode[]): readonly Part[] {
  return nodes.flatMap((node, at) => [
    at === 0 ? '' : ', ',
    link(node, node.kind === 'handler' ? node.subscription : node.id),
  ]);
}

const isKind =
  <Kind extends TraceNode['kind']>(kind: Kind) =>
  (node: TraceNode): node is Of<Kind> =>
    node.kind === kind;

function timeOf(at: string | null, before = ' at '): readonly Part[] {
  return at === null ? [] : [before, { at }];
}

function timesText(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** For tests and for copying. */
export function sentenceText({ parts }: Sentence): string {
  return parts
    .map((part) => (typeof part === 'string' ? part : 'at' in part ? part.at : part.text))
    .join('');
}
