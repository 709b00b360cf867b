// Who has subjects of a file's bus for itself: a lock on a file beside it, which the system takes back from
// whoever dies, however long it was frozen before.

import { DatabaseSync } from 'node:sqlite';
import { MillraceError } from '../../foundation/error.ts';
import { describeFailure, isBusy } from './connection/error.ts';

/** Whoever looks whether it is held keeps it for a moment, too. */
const lookMs = 250;

const lockOf = (path: string): string => `${path}-claim`;

/** Held until it is disposed of. Somebody else holds it: `BUS_CLAIMED`. */
export function holdClaim(path: string): Disposable {
  const lock = new DatabaseSync(lockOf(path), { timeout: lookMs });
  try {
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if (!isBusy(describeFailure(error))) throw error;
    const text = `another process has subjects of ${path} for itself`;
    throw new MillraceError('BUS_CLAIMED', text, { details: { path }, cause: error });
  }
  return {
    [Symbol.dispose]() {
      if (lock.isOpen) lock.close();
    },
  };
}

export function isClaimHeld(path: string): boolean {
  const lock = new DatabaseSync(lockOf(path), { timeout: 0 });
  try {
    lock.exec('begin; select count(*) from sqlite_schema');
    return false;
  } catch (error) {
    if (isBusy(describeFailure(error))) return true;
    throw error;
  } finally {
    lock.close();
  }
}

const claimed = 'another process has this subject for itself: ';

/** How the writer thread says that it was refused. */
export function claimedText(subject: string): string {
  return `${claimed}${subject}`;
}

export function isClaimedText(text: string): boolean {
  return text.startsWith(claimed);
}
