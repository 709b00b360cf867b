// The names that each builder builds. A string that matches a shape can be corrected or rewritten as a call.

import { camelCase, kebabCase } from '../identifier.ts';
import { fragmentCode, hasPlaceholder, quote, type SourceText } from './source-text.ts';

/** The code of a builder call and the name that the call builds; `<part>` marks the same part in both. */
export interface Shape {
  readonly call: string;
  readonly name: string;
  /** Ignores braces and the case of letters, so a name with mistakes there can be corrected. */
  readonly pattern: RegExp;
}

const owner = '<tenant>, <bc>, <agg>, <version>';
const readModel = 'app:{<tenant>}:<bc>:<agg>:v<version>';
const queue = 'mq:{<tenant>}:<bc>:<agg>:v<version>';
const slack = 'notification.slack:v1:{<tenant>}';

/** The first shape that matches counts, so special shapes come first. */
export const shapes = {
  eventType: table`
    buildEventType(<agg>, <action>, <version>) → <agg>.<action>.v<version>`,
  stream: table`
    eventTypeStream(buildEventType(<agg>, <action>, <version>)) → $et-<agg>.<action>.v<version>
    eventTypeStream(<type>) → $et-<type>
    categoryStream(<bc>, <agg>, <version>) → $ce-<bc>.<agg>.v<version>
    slackAddressing.stream(<tenant>, <id>) → notification.slack.request-<tenant>-<id>
    buildStreamName(<bc>, <agg>, <version>, <tenant>, <id>) → <bc>.<agg>.v<version>-<tenant>-<id>
    buildCategory(<bc>, <agg>, <version>) → <bc>.<agg>.v<version>`,
  subscription: table`
    buildSubscriptionName(<service>, <name>, <version>) → sub:<service>:<name>:v<version>`,
  redisKey: table`
    redisKeys.hash(${owner}, <id>) → ${readModel}:h:<id>
    redisKeys.index(${owner}, <field>) → ${readModel}:index:by-<field>
    redisKeys.set(${owner}, <set>) → ${readModel}:set:<set>
    redisKeys.zset(${owner}, <field>) → ${readModel}:zset:by-<field>
    redisKeys.listOf(${owner}, <hash>) → ${readModel}:list:{<hash>}
    redisKeys.snapshot(${owner}, <id>) → ${readModel}:<id>
    redisKeys.queue(${owner}, <work>) → ${queue}:<work>
    redisKeys.queueAddress(${owner}, work).prefix → ${queue}
    redisKeys.jobId(<tenant>, <bc>, <agg>, <work>, <id>) → job:{<tenant>}:<bc>:<agg>:<work>:<id>
    redisKeys.checkpoint(buildSubscriptionName(<service>, <name>, <version>)) → checkpoint:esdb:sub:<service>:<name>:v<version>
    redisKeys.checkpoint(<subscription>) → checkpoint:esdb:<subscription>
    redisKeys.workflowCheckpoint(<saga>, <tenant>) → checkpoint:workflow:<saga>:{<tenant>}
    slackAddressing.snapshot(<tenant>, <id>) → ${slack}:message-request:<id>
    slackAddressing.dispatched(<tenant>, <id>) → ${slack}:message-request:<id>:dispatched
    slackAddressing.sendLock(<tenant>, <id>) → ${slack}:message-request:<id>:send-lock
    slackAddressing.indexUpdated(<tenant>) → ${slack}:idx:message-request:updated
    slackAddressing.indexByStatus(<tenant>, <status>) → ${slack}:idx:message-request:by-status:<status>`,
  queueAddress: table`
    redisKeys.queueAddress(${owner}, <work>).name → ${queue}:<work>`,
  /** After the root; `subjects` or `createSubjects(…)` precedes the call. */
  subject: table`
    .notify.customer(<customer>)[<member>] → notify.customer.<customer>.<member>
    .notify.broadcast[<member>] → notify.broadcast.<member>
    .notify.topic(<topic>) → notify.topic.<topic>
    .events[<entity>][<member>] → events.<entity>.<member>
    .tasks.control[<member>] → tasks._control.<member>
    .tasks.type(<taskType>)[<member>] → tasks.<taskType>.<member>`,
};

function table(strings: TemplateStringsArray, ...values: readonly string[]): readonly Shape[] {
  const rows = String.raw({ raw: strings }, ...values)
    .trim()
    .split('\n');
  return rows.map((row) => {
    const [call = '', name = ''] = row.trim().split(' → ');
    return { call, name, pattern: patternOf(name) };
  });
}

export interface ShapeMatch extends Shape {
  readonly parts: Readonly<Record<string, string>>;
}

export function matchShape(form: string, candidates: readonly Shape[]): ShapeMatch | undefined {
  const withoutBraces = form.replace(/[{}]/g, '');
  for (const shape of candidates) {
    const parts = shape.pattern.exec(withoutBraces)?.groups;
    if (parts !== undefined) return { ...shape, parts };
  }
  return undefined;
}

/** The call of the builder, with the expressions of the source as arguments. */
export function builderCall({ call, parts }: ShapeMatch, text: SourceText): string {
  return call
    .replace(/<(\w+)>/g, (_, part: string) => {
      const value = parts[part] ?? '';
      if (hasPlaceholder(value)) return fragmentCode(value, text);
      const corrected = correctPart(part, value);
      return part === 'version' ? corrected : quote(corrected);
    })
    .replaceAll("['>']", '.all')
    .replace(/\['([a-z]+)'\]/g, '.$1');
}

/** The name with its parts in the right case and its braces in the right place. */
export function correctName({ name, parts }: ShapeMatch): string {
  return name.replace(/<(\w+)>/g, (_, part: string) => {
    const corrected = correctPart(part, parts[part] ?? '');
    // A category ends at the first hyphen of the stream name, so its parts are in camelCase.
    return name.includes('<bc>.') && /^(?:bc|agg)$/.test(part) ? camelCase(corrected) : corrected;
  });
}

function patternOf(name: string): RegExp {
  const pattern = name
    .replace(/[{}]/g, '')
    .replace(/[.$]/g, '\\$&')
    .replace(/<(\w+)>/g, (_, part: string) => `(?<${part}>${partPattern(part, name)})`);
  return new RegExp(`^${pattern}$`, 'i');
}

function partPattern(part: string, name: string): string {
  if (part === 'version') return String.raw`\d+|[\ue000-\uf8ff]`;
  if (name.includes(':')) return String.raw`[^:\s]+`;
  if (part === 'id') return String.raw`[^\s/:]+`;
  return part === 'tenant' ? String.raw`[^-.\s/:]+` : String.raw`[^.\s/:$]+`;
}

/** Ids are not corrected: a corrected id could be the id of another aggregate. */
const data = new Set([
  'id',
  'hash',
  'type',
  'subscription',
  'customer',
  'topic',
  'entity',
  'member',
]);

function correctPart(part: string, value: string): string {
  if (data.has(part)) return value;
  if (part === 'version') return String(Math.max(1, Number(value)));
  if (part === 'tenant') return value.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  // kebabCase alone would split PAYMENT into letters.
  return kebabCase(value.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase());
}
