// Parses a subject into its parts: domain, entity, variable token and action.

import { nameInvalid } from './identifier.ts';
import { validateSubject } from './subject-match.ts';
import { checkSubjectRoot, isSubjectToken, type SubjectTokenKind } from './subject-tokens.ts';
import { subjectActions, subjectRootDefault, type SubjectOptions } from './subjects.ts';

type Actions = typeof subjectActions;
type Action<
  Domain extends keyof Actions,
  Entity extends keyof Actions[Domain],
> = Actions[Domain][Entity] extends readonly (infer A)[] ? A : never;
type EventEntity = keyof Actions['events'];

interface Parsed<Domain extends string, Entity extends string> {
  readonly root: string;
  readonly domain: Domain;
  readonly entity: Entity;
}

export type CustomerSubject = Parsed<'notify', 'customer'> & {
  readonly customerId: string;
  readonly action: Action<'notify', 'customer'>;
};
export type BroadcastSubject = Parsed<'notify', 'broadcast'> & {
  readonly action: Action<'notify', 'broadcast'>;
};
export type TopicSubject = Parsed<'notify', 'topic'> & { readonly topic: string };
export type EventSubject = {
  [E in EventEntity]: Parsed<'events', E> & { readonly action: Action<'events', E> };
}[EventEntity];
export type TaskSubject = Parsed<'tasks', 'type'> & {
  readonly taskType: string;
  readonly action: Action<'tasks', 'type'>;
};
export type TaskControlSubject = Parsed<'tasks', 'control'> & {
  readonly action: Action<'tasks', 'control'>;
};

export type ParsedSubject =
  | CustomerSubject
  | BroadcastSubject
  | TopicSubject
  | EventSubject
  | TaskSubject
  | TaskControlSubject;

/**
 * Parses a subject that `createSubjects` can build; throws `NAME_INVALID` for any other.
 *
 * @example
 * import { parseSubject } from 'millrace/contracts';
 *
 * const parsed = parseSubject('gbe.tasks.email-send.queue');
 * if (parsed.domain === 'tasks' && parsed.entity === 'type') console.log(parsed.taskType);
 */
export function parseSubject(subject: string, options: SubjectOptions = {}): ParsedSubject {
  const root = options.root ?? subjectRootDefault;
  checkSubjectRoot(root);
  validateSubject(subject);
  if (!subject.startsWith(`${root}.`)) {
    throw unknownSubject(subject, `does not start with "${root}.": pass the root of this subject`);
  }
  const [domain, ...tokens] = subject.slice(root.length + 1).split('.');
  switch (domain) {
    case 'notify':
      return parseNotify(subject, root, tokens);
    case 'events':
      return parseEvents(subject, root, tokens);
    case 'tasks':
      return parseTasks(subject, root, tokens);
    default:
      throw unknownSubject(subject, expected('domain', ['notify', 'events', 'tasks']));
  }
}

function parseNotify(subject: string, root: string, tokens: readonly string[]): ParsedSubject {
  const [entity, second, third] = tokens;
  const { customer, broadcast } = subjectActions.notify;
  switch (entity) {
    case 'customer': {
      checkCount(subject, tokens, 3);
      const customerId = variable(subject, 'customer id', second);
      return {
        root,
        domain: 'notify',
        entity,
        customerId,
        action: oneOf(subject, third, customer),
      };
    }
    case 'broadcast':
      checkCount(subject, tokens, 2);
      return { root, domain: 'notify', entity, action: oneOf(subject, second, broadcast) };
    case 'topic':
      checkCount(subject, tokens, 2);
      return { root, domain: 'notify', entity, topic: variable(subject, 'topic', second) };
    default:
      throw unknownSubject(subject, expected('entity', ['customer', 'broadcast', 'topic']));
  }
}

function parseEvents(subject: string, root: string, tokens: readonly string[]): ParsedSubject {
  const [entity, action] = tokens;
  if (!isEventEntity(entity)) {
    throw unknownSubject(subject, expected('entity', Object.keys(subjectActions.events)));
  }
  checkCount(subject, tokens, 2);
  const actions: readonly string[] = subjectActions.events[entity];
  // The action comes from the list of this entity; TypeScript cannot express that relation.
  return {
    root,
    domain: 'events',
    entity,
    action: oneOf(subject, action, actions),
  } as EventSubject;
}

function parseTasks(subject: string, root: string, tokens: readonly string[]): ParsedSubject {
  const [first, action] = tokens;
  const { control, type } = subjectActions.tasks;
  checkCount(subject, tokens, 2);
  if (first === '_control') {
    return { root, domain: 'tasks', entity: 'control', action: oneOf(subject, action, control) };
  }
  const taskType = variable(subject, 'task type', first);
  return { root, domain: 'tasks', entity: 'type', taskType, action: oneOf(subject, action, type) };
}

function isEventEntity(text: string | undefined): text is EventEntity {
  return text !== undefined && Object.hasOwn(subjectActions.events, text);
}

function checkCount(subject: string, tokens: readonly string[], count: number): void {
  if (tokens.length === count) return;
  throw unknownSubject(subject, `has ${tokens.length} tokens after its domain; expected ${count}`);
}

function variable(subject: string, kind: SubjectTokenKind, token: string | undefined): string {
  if (token !== undefined && isSubjectToken(kind, token)) return token;
  throw unknownSubject(subject, `contains "${token}", which is not a ${kind}`);
}

function oneOf<const A extends string>(
  subject: string,
  token: string | undefined,
  actions: readonly A[],
): A {
  const action = actions.find((candidate) => candidate === token);
  if (action === undefined) throw unknownSubject(subject, expected('last token', actions));
  return action;
}

function expected(part: string, allowed: readonly string[]): string {
  return `has an unknown ${part}: expected ${allowed.join(', ')}`;
}

function unknownSubject(subject: string, reason: string): Error {
  return nameInvalid('subject', subject, reason);
}
