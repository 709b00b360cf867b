// Where a subject lives in Redis: one stream per subject, its key the subject with colons.

import { nameInvalid } from './identifier.ts';
import { validateSubject } from './subject-match.ts';

/**
 * The key of a subject's Redis stream. Every valid subject has exactly one key and every key leads
 * back: the two alphabets differ only in their separator, because `validateSubject` refuses `:`.
 * Refused rather than escaped, so that a key reads as the subject does and a subject that one
 * transport takes is taken by all of them.
 *
 * @example
 * import { subjectToStreamKey } from 'millrace/contracts';
 *
 * console.log(subjectToStreamKey('gbe.tasks.email-send.queue')); // gbe:tasks:email-send:queue
 */
export function subjectToStreamKey(subject: string): string {
  validateSubject(subject);
  return subject.replaceAll('.', ':');
}

/**
 * The subject that a stream key was made of.
 *
 * @example
 * import { streamKeyToSubject } from 'millrace/contracts';
 *
 * console.log(streamKeyToSubject('gbe:tasks:email-send:queue')); // gbe.tasks.email-send.queue
 */
export function streamKeyToSubject(key: string): string {
  if (key.includes('.')) {
    throw nameInvalid(
      'stream key',
      key,
      'holds "." where a stream key has ":": is it a subject already?',
    );
  }
  const subject = key.replaceAll(':', '.');
  validateSubject(subject);
  return subject;
}
