// The rules: which strings are meant as a name, and what is wrong with them. Literals are checked by the parsers of
// src/contracts; for a name that the code builds by hand, the report suggests the builder.

import { MillraceError } from '../../foundation/error.ts';
import { isEventType, parseEventType } from '../event-type.ts';
import { checkNoPersonalData, nameInvalid } from '../identifier.ts';
import { parseRedisKey } from '../redis-keys.ts';
import { slackAddressing } from '../slack-addressing.ts';
import { parseStreamName } from '../stream-name.ts';
import { validatePattern } from '../subject-match.ts';
import { parseSubject } from '../subject-parse.ts';
import { subjectActions, subjectRootDefault } from '../subjects.ts';
import { parseSubscriptionName } from '../subscription-name.ts';
import type { Report } from './finding.ts';
import { builderCall, correctName, matchShape, shapes, type Shape } from './name-shapes.ts';
import { isPastTense } from './past-tense.ts';
import { fragmentCode, quote, type SourceText, type Usage } from './source-text.ts';

type NameProblem = Pick<Report, 'rule' | 'reason' | 'suggestion'>;
type NameRule = (text: SourceText, roots: readonly string[]) => NameProblem | undefined;

/** In order of precedence: only the first problem of a string is reported. */
export const nameRules: readonly NameRule[] = [
  queueName,
  redisKey,
  subscriptionName,
  subject,
  streamName,
  eventType,
  eventTense,
];

interface Grammar {
  readonly rule: Report['rule'];
  /** Throws for an invalid name. */
  readonly parse: (name: string) => unknown;
  readonly shapes: readonly Shape[];
}

function checkName(text: SourceText, grammar: Grammar): NameProblem | undefined {
  const { rule, parse } = grammar;
  const match = matchShape(text.form, grammar.shapes);
  if (text.expressions.length > 0) {
    const builder = match?.call.split('(')[0] ?? 'the builders of millrace/contracts';
    const reason = `the name is built by hand, so its parts are not checked: use ${builder}`;
    return { rule, reason, suggestion: match && builderCall(match, text) };
  }
  const reason = rejectionOf(() => parse(text.form));
  if (reason === undefined) return undefined;
  const corrected = match && correctName(match);
  const isValid = corrected !== undefined && rejectionOf(() => parse(corrected)) === undefined;
  return { rule, reason, suggestion: isValid ? quote(corrected) : undefined };
}

function rejectionOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    const { kind, value, reason } = error.details;
    return typeof reason === 'string'
      ? `${String(kind)} '${String(value)}' ${reason}`
      : error.message;
  }
}

/** For names without a parser: the parts must have the right case and the braces the right place. */
function checkShape(kind: string, name: string, candidates: readonly Shape[]): void {
  const match = matchShape(name, candidates);
  if (match !== undefined && correctName(match) === name) return;
  throw nameInvalid(kind, name, `must be ${match?.name ?? 'a name of the grammar'}`);
}

// Event types

const eventTypes: Grammar = { rule: 'event-type', parse: parseEventType, shapes: shapes.eventType };
const eventTypeLike = /^[\w\ue000-\uf8ff-]+\.[\w\ue000-\uf8ff.-]+\.v(?:\d+|[\ue000-\uf8ff])$/i;
const eventWords = /\b(?:agg|aggregate|action|event)(?![a-z])/;
const eventName = /^types?$|events?$|event_?types?$/i;
/** Functions and decorators whose first argument can be an event type. */
const eventCalls = new Set(['defineEvent', 'on', 'once', 'off', 'emit', 'EventPattern', 'OnEvent']);

function eventType(text: SourceText): NameProblem | undefined {
  const { form, expressions, usage } = text;
  const isDefinition = usage.call?.callee === 'defineEvent' && usage.call.index === 0;
  const isMeant = isEventUsage(usage) || expressions.some((code) => eventWords.test(code));
  const isName = isDefinition || (isMeant && eventTypeLike.test(form));
  return isName ? checkName(text, eventTypes) : undefined;
}

/** Maps of handlers by event type. */
const handlerMaps = new Set(['evolve', 'on']);

function isEventUsage({ names, isKey, call }: Usage): boolean {
  if (isKey && handlerMaps.has(names[0] ?? '')) return true;
  return call === undefined
    ? names.some((name) => eventName.test(name))
    : call.index === 0 && eventCalls.has(call.callee);
}

function eventTense({ form, expressions, usage }: SourceText): NameProblem | undefined {
  const type = form.replace(/^\$et-/, '');
  const isMeant = type !== form || isEventUsage(usage);
  let action = isMeant && isEventType(type) ? parseEventType(type).action : undefined;
  if (usage.call?.callee === 'buildEventType' && usage.call.index === 1) action = form;
  if (action === undefined || expressions.length > 0 || isPastTense(action)) return undefined;
  const reason = `'${action}' is not in the past tense: an event describes what happened`;
  return { rule: 'event-tense', reason };
}

// Stream names

const streams: Grammar = { rule: 'stream-name', parse: parseStream, shapes: shapes.stream };
const slackStream = 'notification.slack.request';
const streamPrefixes = ['$ce-', '$et-', `${slackStream}-`];
const streamLike =
  /^[\w\ue000-\uf8ff-]+(?:\.[\w\ue000-\uf8ff-]+)+\.v(?:\d+|[\ue000-\uf8ff])-[^\s/]*$/i;
const categoryLike =
  /^(?:[^.\s/:$]+\.[^.\s/:$]+\.v(?:\d+|[\ue000-\uf8ff])|[\ue000-\uf8ff]-[^\s/]+-[^\s/]+)$/i;
const categoryWords = /\b(?:bc|context|category)(?![a-z])/;
const fileName = /\.[a-z]{1,4}$/i;

function streamName(text: SourceText): NameProblem | undefined {
  const { form, expressions } = text;
  const isPrefixed = streamPrefixes.some((prefix) => form.startsWith(prefix));
  const isCategory =
    categoryLike.test(form) && expressions.some((code) => categoryWords.test(code));
  const isLike = isPrefixed || isCategory || (streamLike.test(form) && !fileName.test(form));
  // A prefix alone is compared with other names.
  return isLike && !streamPrefixes.includes(form) ? checkName(text, streams) : undefined;
}

function parseStream(name: string): void {
  if (name.startsWith('$et-')) parseEventType(name.slice('$et-'.length));
  else if (name.startsWith(`${slackStream}-`)) slackAddressing.parseStream(name);
  else if (!name.startsWith('$ce-')) parseStreamName(name);
  else if (name !== `$ce-${slackStream}`) checkShape('category stream', name, shapes.stream);
}

// Subscription names

const subscriptions: Grammar = {
  rule: 'subscription-name',
  parse: parseSubscriptionName,
  shapes: shapes.subscription,
};
/** Four segments: `sub:user:created` is a name of something else. */
const subscriptionLike = /^sub(?::[^\s:*<]+){3}$/;

function subscriptionName(text: SourceText): NameProblem | undefined {
  return subscriptionLike.test(text.form) ? checkName(text, subscriptions) : undefined;
}

// Redis keys

const keys: Grammar = { rule: 'redis-key', parse: parseKey, shapes: shapes.redisKey };
const keyLike = /^(?:app|mq|job|checkpoint|notification\.slack:v1):[^\s<>]+$/;
/** `app:start` and `job:done` are names of something else. */
const keyDetails =
  /[{}]|:v(?:\d+|[\ue000-\uf8ff])(?::|$)|^checkpoint:(?:esdb|workflow):|(?::[^:]*){4}/i;
const hashTag = /^(?:(?:app|mq|job|notification\.slack:v1):\{[^{}]+\}|checkpoint:)/;

function redisKey(text: SourceText): NameProblem | undefined {
  const { form } = text;
  if (!keyLike.test(form) || !keyDetails.test(form)) return undefined;
  // A pattern for SCAN or a prefix has no builder, but its tenant must be the hash tag.
  const isPattern = /[*?]|:$/.test(form);
  const problem = isPattern ? undefined : checkName(text, keys);
  if (hashTag.test(form)) return problem;
  const tenant = /^(?:notification\.slack:v1|\w+):([\w-]+)/.exec(form)?.[1] ?? 'tenant';
  const reason = `the tenant must be in braces, {${tenant}}, to keep its keys in one slot of a cluster`;
  const isComputed = problem !== undefined && text.expressions.length > 0;
  return {
    rule: 'redis-key',
    reason: isComputed ? `${problem.reason}; ${reason}` : reason,
    suggestion: problem?.suggestion,
  };
}

function parseKey(key: string): void {
  if (key.startsWith('notification.slack:')) return checkShape('key', key, shapes.redisKey);
  // `mq:{core}:paymenthub:payment:v1` is the prefix of the queues of an aggregate.
  const isQueuePrefix = /^mq(?::[^:]+){4}$/.test(key);
  const parsed = parseRedisKey(isQueuePrefix ? `${key}:work` : key);
  if (parsed.kind === 'snapshot' || parsed.kind === 'hash') checkNoPersonalData(parsed.name);
  if (parsed.kind === 'job') checkNoPersonalData(parsed.id);
}

// Queue names and job ids

/** Classes of BullMQ and decorators of Nest whose first argument is the name of a queue. */
const queueCalls = new Set(['Queue', 'Worker', 'QueueEvents', 'Processor', 'InjectQueue']);

function queueName(text: SourceText): NameProblem | undefined {
  const { form, usage } = text;
  if (!form.includes(':')) return undefined;
  if (usage.property === 'jobId') {
    const reason = "BullMQ rejects ':' in a job id: encode it with encodeJobId";
    const key = matchShape(form, shapes.redisKey);
    const code = key === undefined ? fragmentCode(form, text) : builderCall(key, text);
    return { rule: 'queue-name', reason, suggestion: `encodeJobId(${code})` };
  }
  // A string with a slash is the file or URL of a worker thread.
  const isArgument =
    usage.call?.index === 0 && queueCalls.has(usage.call.callee) && !form.includes('/');
  if (!isArgument && usage.property !== 'queueName') return undefined;
  const address = matchShape(form, shapes.queueAddress);
  const reason =
    "BullMQ rejects ':' in a queue name: use the name and the prefix of redisKeys.queueAddress";
  return { rule: 'queue-name', reason, suggestion: address && builderCall(address, text) };
}

// Subjects

const subjectDomains = Object.keys(subjectActions);

function subject(text: SourceText, roots: readonly string[]): NameProblem | undefined {
  const { form, expressions } = text;
  // Colons: the Redis stream key of a subject.
  const separator = /^[\w-]+:/.test(form) ? ':' : '.';
  const root = roots.find((candidate) =>
    form.startsWith(candidate.replaceAll('.', separator) + separator),
  );
  const tokens = form.slice((root?.length ?? 0) + 1).split(separator);
  const isSubject = subjectDomains.includes(tokens[0] ?? '') && tokens.length > 1;
  // A prefix is compared with subjects.
  const isPrefix = tokens.at(-1) === '';
  if (root === undefined || !isSubject || isPrefix || /[\s<]/.test(form)) return undefined;
  const isPattern = /[*>]/.test(form);
  if (expressions.length === 0) {
    // A pattern with colons is a glob over Redis stream keys.
    if (isPattern && separator === ':') return undefined;
    const name = [root, ...tokens].join('.');
    const reason = rejectionOf(() =>
      isPattern ? validatePattern(name) : parseSubject(name, { root }),
    );
    return reason === undefined ? undefined : { rule: 'subject', reason };
  }
  const match = tokens.includes('*') ? undefined : matchShape(tokens.join('.'), shapes.subject);
  const base =
    root === subjectRootDefault ? 'subjects' : `createSubjects({ root: ${quote(root)} })`;
  const call = match && `${base}${builderCall(match, text)}`;
  return {
    rule: 'subject',
    reason: 'the subject is built by hand, so its parts are not checked: use createSubjects',
    suggestion: call && (separator === ':' ? `subjectToStreamKey(${call})` : call),
  };
}
