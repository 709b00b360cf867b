// Classifies errors of the driver by their shape, without importing its classes.

import { errorTextLimits } from '../../delivery/delivery-outcome.ts';
import { cleanText } from '../../foundation/error-text.ts';
import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';

/** The result for the records of one partition. */
export type PartitionResult =
  | { readonly kind: 'stored'; readonly offset: bigint }
  | { readonly kind: 'rejected'; readonly code: string; readonly error: string };

export type KafkaErrorKind = 'permanent' | 'transient' | 'ambiguous';

/** Codes that mean that the broker rejects the record itself, so that a retry fails too. */
const permanent: ReadonlySet<string> = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'INVALID_TOPIC_EXCEPTION',
]);

/** Codes after which the record may have been stored. */
const ambiguous: ReadonlySet<string> = new Set([
  'UNKNOWN_SERVER_ERROR',
  'REQUEST_TIMED_OUT',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'DUPLICATE_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
]);

/**
 * Classifies an error code of a broker. An unknown topic or a missing permission is transient, because an operator can
 * fix it without changing the message.
 *
 * @example
 * import { classifyKafkaError } from 'millrace/destinations/kafka';
 *
 * console.log(classifyKafkaError('MESSAGE_TOO_LARGE')); // permanent
 */
export function classifyKafkaError(code: string): KafkaErrorKind {
  if (permanent.has(code)) return 'permanent';
  return ambiguous.has(code) ? 'ambiguous' : 'transient';
}

export function outcomeOfCode(code: string, error: string): Retry | Dead {
  const kind = classifyKafkaError(code);
  if (kind === 'permanent') return { kind: 'dead', error };
  return { kind: 'retry', error, ...(kind === 'ambiguous' ? { ambiguous: true } : {}) };
}

/** The outcome of a call without a response for any record. */
export function outcomeOfFailure(error: unknown): Retry {
  const text = failureText(error);
  // The driver sets `produced` once it has sent records.
  const wasSending = typeof error === 'object' && error !== null && 'produced' in error;
  return { kind: 'retry', error: text, ...(wasSending ? { ambiguous: true } : {}) };
}

/** The responses inside an error, by `topic:partition`; partitions without a response are missing. */
export function resultsInError(error: unknown): ReadonlyMap<string, PartitionResult> {
  const results = new Map<string, PartitionResult>();
  for (const each of tree(error)) {
    for (const { topic, partition, offset } of producedOf(each)) {
      results.set(`${topic}:${partition}`, { kind: 'stored', offset });
    }
    for (const { name, partitionResponses } of responsesOf(each)) {
      for (const { index, errorCode, baseOffset, errorMessage } of partitionResponses) {
        const partitionKey = `${name}:${index}`;
        // A stored record stays stored, whatever a retry of the driver reports.
        if (results.get(partitionKey)?.kind === 'stored') continue;
        if (errorCode === 0) {
          results.set(partitionKey, { kind: 'stored', offset: baseOffset });
          continue;
        }
        const code = codeNamed(each, errorCode);
        results.set(partitionKey, {
          kind: 'rejected',
          code,
          error: `${code}: ${errorMessage ?? 'rejected'}`,
        });
      }
    }
  }
  return results;
}

interface Produced {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
}

interface TopicResponse {
  readonly name: string;
  readonly partitionResponses: readonly {
    readonly index: number;
    readonly errorCode: number;
    readonly baseOffset: bigint;
    readonly errorMessage?: string | null;
  }[];
}

function producedOf(error: object): readonly Produced[] {
  const { produced } = error as { produced?: { offsets?: readonly Produced[] } };
  return produced?.offsets ?? [];
}

function responsesOf(error: object): readonly TopicResponse[] {
  const { response } = error as { response?: { responses?: readonly TopicResponse[] } };
  return response?.responses ?? [];
}

function codeNamed(error: object, apiCode: number): string {
  for (const each of tree(error)) {
    if ('apiCode' in each && each.apiCode === apiCode && 'apiId' in each) return String(each.apiId);
  }
  return `ERROR_${apiCode}`;
}

/** The error, its aggregated errors and its causes, each once. */
function* tree(error: unknown, seen = new Set<object>()): Generator<object> {
  if (typeof error !== 'object' || error === null || seen.has(error)) return;
  seen.add(error);
  yield error;
  if (error instanceof AggregateError) for (const each of error.errors) yield* tree(each, seen);
  if (error instanceof Error) yield* tree(error.cause, seen);
}

/** Only the leaves say what happened (`connect ECONNREFUSED …`), not the aggregates. */
function failureText(error: unknown): string {
  const leaves = new Set<string>();
  for (const each of tree(error)) {
    if (!(each instanceof Error) || each instanceof AggregateError) continue;
    const id = 'apiId' in each ? `${String(each.apiId)}: ` : '';
    leaves.add(`${id}${each.message}`);
  }
  const text = [...leaves].join('; ') || (error instanceof Error ? error.message : String(error));
  return cleanText(text, errorTextLimits.charsMax);
}
