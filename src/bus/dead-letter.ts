// What a group could not do anything with, and why: an entry of the group's dead-letter stream.

/**
 * `malformed`: no transport envelope. `payload-invalid`: not what the schema of its subject wants.
 * `max-deliveries`: handed out as often as the group allows. `terminated`: its handler said so.
 */
export type DeadLetterCause = 'malformed' | 'payload-invalid' | 'max-deliveries' | 'terminated';

export interface BusDeadLetter {
  /** Its place in the dead-letter stream. */
  readonly sequence: string;
  readonly group: string;
  readonly cause: DeadLetterCause;
  /** In words: what was wrong, or what the last attempt said. */
  readonly reason: string;
  readonly origin: { readonly subject: string; readonly sequence: string; readonly storedAt: Date };
  /** How often it was handed out. */
  readonly attempts: number;
  readonly diedAt: Date;
  /** Exactly what stood in the stream. */
  readonly data: Uint8Array;
}

/**
 * Where the dead letters of a group are. The first token begins with `_`, so that no pattern of a domain
 * and no `>` takes it: a group never gets its own dead letters.
 *
 * @example
 * import { deadLetterSubject } from 'millrace/bus';
 *
 * console.log(deadLetterSubject('email-send-workers')); // _dead.email-send-workers
 */
export function deadLetterSubject(group: string): string {
  return `_dead.${group}`;
}

/** What is replayed to one group alone: every group reads this subject beside its own pattern. */
export function redoSubject(group: string): string {
  return `_redo.${group}`;
}

/** Where one bus hears the answers to its requests. */
export function replySubject(token: string): string {
  return `_reply.${token}`;
}

/** What stands beside the bytes of a letter (`EngineEntry.meta`). */
export interface DeadLetterMeta {
  readonly group: string;
  readonly cause: DeadLetterCause;
  readonly reason: string;
  readonly subject: string;
  readonly sequence: string;
  readonly storedAtMs: number;
  readonly attempts: number;
  readonly diedAtMs: number;
}
