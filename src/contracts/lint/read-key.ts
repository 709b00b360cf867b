// Reads a Redis key, literal or computed, as the call that builds it; braces are judged elsewhere.

import type { BuilderName } from './builders.ts';
import type { Reading } from './reading.ts';
import { readSubscriptionName } from './rules/subscription-name.ts';
import { hasHole, holeRange } from './text.ts';

const versionSegment = new RegExp(`^[vV](\\d+|[${holeRange}])$`, 'u');

/** `undefined` when the segments fit no key of the keyspace. */
export function readKey(form: string): Reading | undefined {
  const [space, ...segments] = form.split(':').map(bare);
  switch (space) {
    case 'app':
      return readOwned(segments, readModelKey);
    case 'mq':
      return readOwned(segments, (rest) =>
        rest.length === 1 ? { builder: 'redisKeys.queue', parts: rest } : undefined,
      );
    case 'job':
      return segments.length === 5 ? { builder: 'redisKeys.jobId', parts: segments } : undefined;
    case 'checkpoint':
      return readCheckpoint(segments);
    case 'notification.slack':
      return segments[0] === 'v1' ? readSlackKey(segments.slice(1)) : undefined;
    default:
      return undefined;
  }
}

/** `{core}` → `core`: where braces belong is decided by the key that the builder makes. */
export function bare(segment: string): string {
  return segment.replace(/[{}]/g, '');
}

interface Tail {
  readonly builder: BuilderName;
  readonly parts: readonly string[];
}

/** `<tenant>:<bc>:<agg>:v<version>:…` */
function readOwned(
  segments: readonly string[],
  readTail: (rest: readonly string[]) => Tail | undefined,
): Reading | undefined {
  const [tenant = '', bc = '', agg = '', versioned = '', ...rest] = segments;
  const version = versionSegment.exec(versioned)?.[1];
  const tail = version === undefined ? undefined : readTail(rest);
  if (version === undefined || tail === undefined) return undefined;
  return { builder: tail.builder, parts: [tenant, bc, agg, version, ...tail.parts] };
}

const fixedTails: Readonly<Record<string, BuilderName>> = {
  'index:by-code': 'redisKeys.indexByCode',
  'set:all': 'redisKeys.setAll',
  'set:enabled': 'redisKeys.setEnabled',
  'zset:by-updated': 'redisKeys.zsetByUpdated',
};

function readModelKey(rest: readonly string[]): Tail | undefined {
  const [first = '', second = ''] = rest;
  if (rest.length === 1) return { builder: 'redisKeys.snapshot', parts: [first] };
  if (rest.length !== 2) return undefined;
  const fixed = fixedTails[rest.join(':')];
  if (fixed !== undefined) return { builder: fixed, parts: [] };
  const field = /^by-(.+)$/s.exec(second)?.[1];
  switch (first) {
    case 'h':
      return { builder: 'redisKeys.hash', parts: [second] };
    case 'set':
      return { builder: 'redisKeys.set', parts: [second] };
    case 'index':
      return field === undefined ? undefined : { builder: 'redisKeys.index', parts: [field] };
    case 'zset':
      return field === undefined ? undefined : { builder: 'redisKeys.zset', parts: [field] };
    case 'list':
      return { builder: 'redisKeys.list', parts: [second] };
    default:
      return undefined;
  }
}

function readCheckpoint(segments: readonly string[]): Reading | undefined {
  const [kind, ...rest] = segments;
  if (kind === 'workflow') {
    return rest.length === 2 ? { builder: 'redisKeys.workflowCheckpoint', parts: rest } : undefined;
  }
  if (kind !== 'esdb') return undefined;
  const name = rest.join(':');
  const subscription = readSubscriptionName(name);
  if (subscription !== undefined) return { builder: 'redisKeys.checkpoint', parts: [subscription] };
  return rest.length === 1 && hasHole(name)
    ? { builder: 'redisKeys.checkpoint', parts: [name] }
    : undefined;
}

function readSlackKey([tenant = '', ...rest]: readonly string[]): Reading | undefined {
  const [kind, id = '', suffix, status = ''] = rest;
  if (kind === 'idx' && id === 'message-request') {
    if (rest.length === 3 && suffix === 'updated') {
      return { builder: 'slackAddressing.indexUpdated', parts: [tenant] };
    }
    return rest.length === 4 && suffix === 'by-status'
      ? { builder: 'slackAddressing.indexByStatus', parts: [tenant, status] }
      : undefined;
  }
  if (kind !== 'message-request') return undefined;
  if (rest.length === 2) return { builder: 'slackAddressing.snapshot', parts: [tenant, id] };
  if (rest.length !== 3) return undefined;
  if (suffix === 'dispatched')
    return { builder: 'slackAddressing.dispatched', parts: [tenant, id] };
  return suffix === 'send-lock'
    ? { builder: 'slackAddressing.sendLock', parts: [tenant, id] }
    : undefined;
}
